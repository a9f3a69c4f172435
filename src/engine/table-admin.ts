import { hex } from '../core/base/bytes.ts';
import { conflict, invalid, SluiceError } from '../core/base/errors.ts';
import { uuidV7 } from '../core/base/ids.ts';
import { DIFFERENCES_TOLD_MAX } from '../core/base/limits.ts';
import { checkAttachable } from '../core/commit/attachable.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import type { AttachOperation, Operation } from '../core/commit/operation.ts';
import { parseMetadata } from '../core/iceberg/metadata.ts';
import { layOut, layoutDifferences, type TableDefinition } from '../core/table/definition.ts';
import { SLUICE_FORMAT_VERSION, tableSettings } from '../core/table/properties.ts';
import { commitToEnd } from './commit-to-end.ts';
import { foreignMetadata } from './foreign-metadata.ts';
import { liveTable } from './live-table.ts';
import type { OpenTable, TablePorts } from './open-table.ts';
import type { TableWriter } from './table-writer.ts';

/** Makes, takes over and ends a table. Each is one conditional write; the writer is told what became of the table. */
export class TableAdmin {
  readonly #ports: TablePorts;
  readonly #table: OpenTable;
  readonly #writer: TableWriter;

  constructor(ports: TablePorts, table: OpenTable, writer: TableWriter) {
    this.#ports = ports;
    this.#table = table;
    this.#writer = writer;
  }

  /**
   * Creates the table. Asking again for the same is answered with the table that is there.
   *
   * @throws invalid (see `layOut`); conflict `table-exists` for another definition or a table of somebody else's
   */
  async create(definition: TableDefinition): Promise<{ base: IcebergBase; created: boolean }> {
    const layout = layOut(definition);
    const uuid = uuidV7(this.#ports.clock.now(), this.#ports.random.bytes(10));
    const operation: Operation = {
      kind: 'create',
      commitId: this.#commitId(),
      uploads: [],
      uuid,
      location: this.#table.place.location,
      layout,
    };
    await this.#table.load();
    const result = await this.#commit(operation);
    if (result.outcome === 'committed') {
      this.#writer.replaced(result.base, this.#refusal('table-replaced', 'table was created anew'));
      await this.#point();
      return { base: result.base, created: true };
    }
    const base = result.base;
    const taken = `another table is at this place: ${this.#table.place.location}`;
    if (base === null) throw conflict('table-exists', taken);
    const differences = layoutDifferences(base.metadata, layout);
    const isServed = tableSettings(base.metadata.properties).served;
    if (isServed && differences.length === 0) return { base, created: false };
    const why = isServed ? differences[0] : 'it is not served here, and can be attached';
    const told = differences.slice(0, DIFFERENCES_TOLD_MAX);
    throw conflict('table-exists', `${taken}; ${why}`, { differences: told });
  }

  /**
   * Takes over a table that another writer made, after checking that this service can write it.
   *
   * @throws invalid `unknown-table`, `not-attachable` (with the reason), `malformed` and others of metadata
   */
  async attach(metadataLocation: string | null): Promise<{ base: IcebergBase; attached: boolean }> {
    const { place, sink } = this.#table;
    const base = await this.#table.load().catch((error) => {
      // Copied from elsewhere, files and all: sound where it was made, and not ours to take over here.
      if (!(error instanceof SluiceError) || error.type !== 'location-moved') throw error;
      throw invalid('not-attachable', `table cannot be attached: ${error.message}`, error.detail, error);
    });
    const foreign =
      base === null || metadataLocation !== null
        ? await foreignMetadata(this.#ports.store, place, metadataLocation, (text) => parseMetadata(text))
        : null;
    if (base !== null && foreign !== null) {
      throw conflict(
        'table-exists',
        `table has versions of its own, so metadata_location must be left out: ${sink.versionPrefix}`,
      );
    }
    const metadata = foreign?.metadata ?? base?.metadata;
    if (metadata === undefined) throw invalid('unknown-table', `no table metadata at ${place.location}`);
    checkAttachable(metadata, place.location);
    const settings = tableSettings(metadata.properties);
    if (base !== null && settings.served) return { base, attached: false };
    const operation: AttachOperation = {
      kind: 'attach',
      commitId: this.#commitId(),
      uploads: [],
      foreign,
      properties: { 'sluice.format-version': SLUICE_FORMAT_VERSION },
    };
    const result = await this.#commit(operation);
    if (result.outcome === 'refused') throw invalid(result.type, result.message);
    if (result.outcome === 'nothing') return { base: liveTable(result.base, place), attached: false };
    this.#writer.replaced(result.base, this.#refusal('table-replaced', 'another table was attached'));
    await this.#point();
    return { base: result.base, attached: true };
  }

  /** Ends the table with a last valid version; returns how many buffered rows went with it. */
  async drop(): Promise<{ version: number; discardedRows: number }> {
    const base = liveTable(await this.#table.load(), this.#table.place);
    const operation: Operation = {
      kind: 'drop',
      commitId: this.#commitId(),
      uploads: [],
      tableUuid: base.metadata['table-uuid'],
      uuid: uuidV7(this.#ports.clock.now(), this.#ports.random.bytes(10)),
    };
    const result = await this.#commit(operation);
    if (result.outcome !== 'committed') throw invalid('unknown-table', result.message);
    const refusal = this.#refusal('table-dropped', 'table was dropped');
    const discardedRows = this.#writer.replaced(result.base, refusal, operation.tableUuid);
    await this.#point();
    return { version: result.base.version, discardedRows };
  }

  #commit(operation: Operation) {
    return commitToEnd(this.#ports.clock, this.#table, () => operation);
  }

  /** The pointer follows; when it cannot now, the writer's next run moves it. */
  async #point(): Promise<void> {
    await this.#writer.runFlushes();
    await this.#writer.pointed();
  }

  #commitId(): string {
    return hex(this.#ports.random.bytes(16));
  }

  #refusal(type: string, message: string) {
    return { outcome: 'refused' as const, type, message, atMs: this.#ports.clock.now() };
  }
}
