import { FORMAT_NAMES } from './formats.ts';

const ALL = `
  --url URL       address of the service; else SLUICE_URL, else http://127.0.0.1:8787
  --json          one JSON value on the standard output, for programs
  --quiet         no progress
  --help          this text

The token is read from the environment variable SLUICE_TOKEN alone: arguments are seen by others.
Exits with 0 when done, 1 when the service refused, 2 when the command is wrong, 3 when the service gave no
answer or was busy for too long. With 3 the same command again goes on where it ended.
`;

const FILE = `
  --format NAME   ${FORMAT_NAMES.join(', ')}; else by the file's suffix, also
                  before .gz and .zst; the standard input is ndjson
  --delimiter D   of CSV: comma, semicolon, tab or pipe
  --precision P   of points: ns, us, ms or s`;

const LOAD = `${FILE}
  --id NAME       name of the load; else the file's content is its name. The same load again takes nothing twice, for
                  15 days: after a break run the same command again. The standard input has no name unless you give one
  --on-error E    refuse (default): one bad row refuses its batch and ends the load; skip: bad rows are left out
  --batch-rows N  rows of a batch, 50000 and at most 100000
  --batch-bytes N bytes of a batch, 8 MiB and at most 24 MiB
  --parallel N    batches on their way at once, 1; more are faster, and of equal keys any may be the newest
  --no-flush      do not wait until all is committed`;

const LOOK = `
  --where C=V     rows whose column has the value; several values of a column: any of them; several columns: all of them
  --null C        rows without a value in the column, or with one of those of --where
  --format NAME   table (default), json, ndjson or arrow, which needs --out
  --out FILE      write the answer to a file`;

const HELP: Readonly<Record<string, string>> = {
  create: `create NAMESPACE/TABLE (--definition FILE | --from FILE)

Makes a table: by a definition in a JSON file, or by one that the service proposes for the rows of a file,
which then are loaded.

  --definition F  a definition, as PUT /v1/tables/{ns}/{table} takes it or as infer prints it
  --from FILE     a file of rows; with --definition it is loaded and not looked at
  --no-load       make the table and load nothing
  --dry-run       print the definition and make nothing
  --time-column C, --series-key A,B, --chunk hour|day|month, --dedup true|false, --property KEY=VALUE
                  take the place of what was proposed; none for no time column or key
${LOAD}`,
  load: `load NAMESPACE/TABLE FILE|-

Loads the rows of a file, or of the standard input, in batches. Points (.lp) go to the tables of their
measurements in the namespace.
${LOAD}`,
  infer: `infer FILE

Prints the definition that the service proposes for the rows of a file, and why.
${FILE}
  --measurement M of points: the one to look at`,
  describe: `describe [NAMESPACE/TABLE]

Tells columns, properties, snapshot and buffer of a table; without one the tables that the token may see.`,
  rows: `rows NAMESPACE/TABLE

Tells rows in the order of their time. Those that wait in the buffer are not among them. With dedup rows are chosen by columns
of the series key alone.

  --from T        first time: ISO 8601, UTC without a zone; a date is its midnight
  --to T          time that is not in the range any more
  --columns A,B   these columns, in this order
  --limit N       rows, 20 in a table, else 1000; at most 100000
  --newest        the newest first
  --ref NAME      a branch or tag, not main
  --snapshot ID   an older state
${LOOK}`,
  latest: `latest NAMESPACE/TABLE

Tells the newest row of each series.

  --buffered      count rows that wait in the buffer too
${LOOK}`,
  files: `files NAMESPACE/TABLE

Counts data files, their rows and bytes by partition.

  --limit N       partitions, 20
  --offset N      skip so many partitions`,
  snapshots: `snapshots NAMESPACE/TABLE

Lists retained snapshots, newest first.

  --limit N       entries, 20`,
  flush: `flush NAMESPACE/TABLE

Commits what waits, and returns when it is in the table.`,
  maintain: `maintain NAMESPACE/TABLE [retention] [compact] [index] [expire] [erase] [rewrite-manifests] [sweep]

Drops partitions past the table's retention, merges small data files, removes snapshots past their time, deletes files whose
hour has come, and lists the same files in fewer manifests; all of these when none is named. A sweep looks for files that
nothing refers to, and queues them to be deleted.

  --dry-run       only tell what would be done`,
  tail: `tail NAMESPACE/TABLE

Tells the state of a table whenever it changes, until it is interrupted.

  --interval S    seconds between looks, 2
  --count N       stop after so many lines`,
};

export const COMMANDS = Object.keys(HELP);

/** Help on a command; null: on all. */
export function helpOn(command: string | null): string {
  if (command !== null) return `npm run cli -- ${HELP[command]}\n${ALL}`;
  const lines = Object.values(HELP).map((text) => `  ${text.split('\n')[0]}`);
  return `npm run cli -- COMMAND

A client of the service's HTTP interface.

${lines.join('\n')}

COMMAND --help tells more of one.
${ALL}`;
}
