"""A catalog of PyIceberg that is nothing but the tables' folders: enough to create a table and to write into it."""

from engines import FILE_IO
from pyiceberg.catalog import MetastoreCatalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.sorting import SortOrder


class FolderCatalog(MetastoreCatalog, NoopCatalog):
    def __init__(self) -> None:
        super().__init__("folder", **FILE_IO)

    def create_table(
        self,
        identifier: str,
        schema: Schema,
        location: str,
        partition_spec: PartitionSpec,
        sort_order: SortOrder,
        properties: dict[str, str],
    ) -> Table:
        staged = self._create_staged_table(identifier, schema, location, partition_spec, sort_order, properties)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        return Table(staged.name(), staged.metadata, staged.metadata_location, staged.io, self)

    def commit_table(self, table: Table, requirements: tuple, updates: tuple) -> CommitTableResponse:
        staged = self._update_and_stage_table(table, table.name(), requirements, updates)
        self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
        return CommitTableResponse(metadata=staged.metadata, metadata_location=staged.metadata_location)
