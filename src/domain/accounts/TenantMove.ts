/**
 * Moves of a tenant between two installations: the requests that the driving command sends to each of them. Both run the
 * same version, so these requests are no public interface. docs/design/placement.md describes the states.
 */
import * as Schema from "effect/Schema"
import { TenantId } from "../Ids.ts"
import { ArtifactRef } from "../knowledge/Source.ts"

/** The reason in the answer for an original that was removed. */
export const removedOriginal = "removed"

export const MoveState = Schema.Literal("serving", "draining", "pausing", "fenced", "away")
export type MoveState = typeof MoveState.Type

/** The state of a move, as one of the two installations stores it. */
export const Move = Schema.Struct({
  tenantId: TenantId,
  /** The id of the move, which is the same at both installations. */
  move: Schema.String,
  role: Schema.Literal("origin", "destination"),
  state: MoveState,
  /** How often the tenant has changed sides. */
  handovers: Schema.Int,
  /** Where callers find the tenant while it is away; null where it arrives from an archive. */
  servedAt: Schema.NullOr(Schema.String),
  /** Accounts of channels, as `channel:external id`. */
  accounts: Schema.Array(Schema.String)
})
export type Move = typeof Move.Type

/** A table's name, and its columns with their SQL types. */
export const TableShape = Schema.Struct({
  table: Schema.String,
  columns: Schema.Array(Schema.String),
  types: Schema.Array(Schema.String)
})
export type TableShape = typeof TableShape.Type

/** The values of a row's primary key, as text. */
export const RowKey = Schema.Array(Schema.String)
export type RowKey = typeof RowKey.Type

/** A row: a JSON array of the PostgreSQL texts of its columns. */
const Row = Schema.String
const Rows = Schema.Array(Row)

/** How many rows, and the sum of their hashes. */
const RowDigest = Schema.Struct({ rows: Schema.Int, hash: Schema.String })
export type RowDigest = typeof RowDigest.Type

/** The rows of a table with keys after `after` up to `upTo`; null for no bound. */
const TablePart = Schema.Struct({
  table: Schema.String,
  after: Schema.NullOr(RowKey),
  upTo: Schema.NullOr(RowKey)
})
export type TablePart = typeof TablePart.Type

/** The current form of a table's changed rows, and the keys of deleted ones (`gone`). */
const ChangedRows = Schema.Struct({ table: Schema.String, rows: Rows, gone: Schema.Array(RowKey) })
export type ChangedRows = typeof ChangedRows.Type

export const ChangeSet = Schema.Struct({
  /** Numbers of the changes, to acknowledge once these are stored. */
  seqs: Schema.Array(Schema.String),
  /** Whether further changes did not fit. */
  more: Schema.Boolean,
  /** In the order of the tables. */
  changes: Schema.Array(ChangedRows),
  /** Originals that the rows name. */
  refs: Schema.Array(ArtifactRef)
})
export type ChangeSet = typeof ChangeSet.Type

/** A waiting job, and the channel event that it processes. Both are rows as JSON. */
export const HeldJob = Schema.Struct({
  id: Schema.String,
  job: Schema.Unknown,
  event: Schema.Unknown
})
export type HeldJob = typeof HeldJob.Type

/** The key that secrets are sealed with during the transfer. Null: they stay sealed with the key of the origin. */
const SealKey = Schema.NullOr(Schema.Redacted(Schema.String))

/** Random id of the command that drives the move. */
const driver = Schema.String
const emptyAnswer = Schema.Struct({})

/** Facts about the installation: its migrations, its tables of tenants, the tenant, and its move. */
export class Facts extends Schema.TaggedRequest<Facts>()("Facts", {
  failure: Schema.Never,
  success: Schema.Struct({
    migrations: Schema.Array(Schema.String),
    tables: Schema.Array(TableShape),
    /** Null: the installation has no such tenant. */
    name: Schema.NullOr(Schema.String),
    move: Schema.NullOr(Move)
  }),
  payload: {}
}) {}

/** Begins the move, or makes this command its driver. */
export class Begin extends Schema.TaggedRequest<Begin>()("Begin", {
  failure: Schema.Never,
  success: Move,
  payload: { driver, move: Schema.String, role: Move.fields.role, servedAt: Move.fields.servedAt }
}) {}

/** Asks for the last key of a part of `rows` rows that begins after `after`. */
export class Split extends Schema.TaggedRequest<Split>()("Split", {
  failure: Schema.Never,
  success: Schema.Struct({ upTo: Schema.NullOr(RowKey) }),
  payload: { table: Schema.String, after: Schema.NullOr(RowKey), rows: Schema.Int }
}) {}

const Page = Schema.Struct({ rows: Rows, next: Schema.NullOr(RowKey) })

/** The first rows of a part; `next` is the key of the last one, null if no others follow. */
export class ReadPage extends Schema.TaggedRequest<ReadPage>()("ReadPage", {
  failure: Schema.Never,
  success: Page,
  payload: { ...TablePart.fields, sealKey: SealKey }
}) {}

/** A page, and the changes of `tables` in the same state of the database. */
export class ReadPageWithChanges extends Schema.TaggedRequest<ReadPageWithChanges>()("ReadPageWithChanges", {
  failure: Schema.Never,
  success: Schema.Struct({ ...ChangeSet.fields, page: Page }),
  payload: {
    ...TablePart.fields,
    sealKey: SealKey,
    tables: Schema.Array(Schema.String),
    limit: Schema.Int
  }
}) {}

/** `unreadable`: secrets that could not be opened, and are stored as they are. */
const Written = Schema.Struct({ unreadable: Schema.Int })

export class WritePage extends Schema.TaggedRequest<WritePage>()("WritePage", {
  failure: Schema.Never,
  success: Written,
  payload: { driver, table: Schema.String, rows: Rows, sealKey: SealKey }
}) {}

/** Asks for the tables that have rows of the tenant. */
export class Filled extends Schema.TaggedRequest<Filled>()("Filled", {
  failure: Schema.Never,
  success: Schema.Struct({ tables: Schema.Array(Schema.String) }),
  payload: {}
}) {}

/** Asks for the parts that have arrived. */
export class Parts extends Schema.TaggedRequest<Parts>()("Parts", {
  failure: Schema.Never,
  success: Schema.Struct({ parts: Schema.Array(TablePart) }),
  payload: {}
}) {}

export class Arrived extends Schema.TaggedRequest<Arrived>()("Arrived", {
  failure: Schema.Never,
  success: emptyAnswer,
  payload: TablePart.fields
}) {}

/** The oldest changes of rows of these tables. */
export class ReadChanges extends Schema.TaggedRequest<ReadChanges>()("ReadChanges", {
  failure: Schema.Never,
  success: ChangeSet,
  payload: { tables: Schema.Array(Schema.String), limit: Schema.Int, sealKey: SealKey }
}) {}

export class WriteChanges extends Schema.TaggedRequest<WriteChanges>()("WriteChanges", {
  failure: Schema.Never,
  success: Written,
  payload: { driver, changes: Schema.Array(ChangedRows), sealKey: SealKey }
}) {}

export class Acknowledge extends Schema.TaggedRequest<Acknowledge>()("Acknowledge", {
  failure: Schema.Never,
  success: emptyAnswer,
  payload: { seqs: Schema.Array(Schema.String) }
}) {}

/** The keys and the digest of some rows after `after`, without rows whose changes are not copied yet. */
export class Sample extends Schema.TaggedRequest<Sample>()("Sample", {
  failure: Schema.Never,
  success: Schema.Struct({ keys: Schema.Array(RowKey), digest: RowDigest, next: Schema.NullOr(RowKey) }),
  payload: { table: Schema.String, after: Schema.NullOr(RowKey), rows: Schema.Int }
}) {}

/** The digest of rows with these keys. */
export class Compare extends Schema.TaggedRequest<Compare>()("Compare", {
  failure: Schema.Never,
  success: RowDigest,
  payload: { table: Schema.String, keys: Schema.Array(RowKey) }
}) {}

/** The number of rows without those that are changing: the given ones, or those whose changes are not copied yet. */
export class Count extends Schema.TaggedRequest<Count>()("Count", {
  failure: Schema.Never,
  success: Schema.Struct({ rows: Schema.Int, changing: Schema.Array(RowKey) }),
  payload: { table: Schema.String, changing: Schema.NullOr(Schema.Array(RowKey)) }
}) {}

/** Originals of the tenant after `after`, in order; empty at the end. */
export class Originals extends Schema.TaggedRequest<Originals>()("Originals", {
  failure: Schema.Never,
  success: Schema.Struct({ refs: Schema.Array(ArtifactRef) }),
  payload: { after: Schema.String }
}) {}

/** Asks which originals are not stored for the tenant yet. */
export class MissingOriginals extends Schema.TaggedRequest<MissingOriginals>()("MissingOriginals", {
  failure: Schema.Never,
  success: Schema.Struct({ refs: Schema.Array(ArtifactRef) }),
  payload: { refs: Schema.Array(ArtifactRef) }
}) {}

const changed = Schema.Struct({ changed: Schema.Boolean })

/** Holds jobs, or requests too, for at most `millis`. */
export class Hold extends Schema.TaggedRequest<Hold>()("Hold", {
  failure: Schema.Never,
  success: changed,
  payload: { driver, to: Schema.Literal("draining", "pausing"), millis: Schema.Int }
}) {}

/** The work that is left: running turns and jobs, and waiting jobs that are not transferred yet. */
export class Progress extends Schema.TaggedRequest<Progress>()("Progress", {
  failure: Schema.Never,
  success: Schema.Struct({
    move: Schema.NullOr(Move),
    turns: Schema.Int,
    jobs: Schema.Int,
    held: Schema.Int
  }),
  payload: {}
}) {}

/** Ends running turns and jobs. */
export class EndRunning extends Schema.TaggedRequest<EndRunning>()("EndRunning", {
  failure: Schema.Never,
  success: emptyAnswer,
  payload: { driver, turns: Schema.Boolean, jobs: Schema.Boolean }
}) {}

/** After its success no row of the tenant changes. `awaitsTurns`: it succeeds only after the tenant's turns have ended. */
export class Fence extends Schema.TaggedRequest<Fence>()("Fence", {
  failure: Schema.Never,
  success: changed,
  payload: { driver, millis: Schema.Int, awaitsTurns: Schema.Boolean }
}) {}

/** The decision of the move: this installation no longer serves the tenant. */
export class HandOver extends Schema.TaggedRequest<HandOver>()("HandOver", {
  failure: Schema.Never,
  success: changed,
  payload: { driver }
}) {}

/** This installation serves the tenant from now on. */
export class Serve extends Schema.TaggedRequest<Serve>()("Serve", {
  failure: Schema.Never,
  success: changed,
  payload: { driver, handovers: Schema.Int }
}) {}

/** This installation serves the tenant as before the move, because nothing was decided. */
export class Release extends Schema.TaggedRequest<Release>()("Release", {
  failure: Schema.Never,
  success: changed,
  payload: { driver }
}) {}

export class ReadJobs extends Schema.TaggedRequest<ReadJobs>()("ReadJobs", {
  failure: Schema.Never,
  success: Schema.Struct({ jobs: Schema.Array(HeldJob) }),
  payload: {}
}) {}

export class WriteJobs extends Schema.TaggedRequest<WriteJobs>()("WriteJobs", {
  failure: Schema.Never,
  success: emptyAnswer,
  payload: { driver, jobs: Schema.Array(HeldJob) }
}) {}

export class AcknowledgeJobs extends Schema.TaggedRequest<AcknowledgeJobs>()("AcknowledgeJobs", {
  failure: Schema.Never,
  success: emptyAnswer,
  payload: { ids: Schema.Array(Schema.String) }
}) {}

/** Processed events of the tenant's channels, after the one with the id `after`. */
export class ReadEvents extends Schema.TaggedRequest<ReadEvents>()("ReadEvents", {
  failure: Schema.Never,
  success: Schema.Struct({ events: Schema.Array(Schema.Unknown), next: Schema.NullOr(Schema.String) }),
  payload: { after: Schema.String }
}) {}

export class WriteEvents extends Schema.TaggedRequest<WriteEvents>()("WriteEvents", {
  failure: Schema.Never,
  success: emptyAnswer,
  payload: { driver, events: Schema.Array(Schema.Unknown) }
}) {}

/** Removes some rows of the tenant. */
export class RemoveSome extends Schema.TaggedRequest<RemoveSome>()("RemoveSome", {
  failure: Schema.Never,
  success: Schema.Struct({ more: Schema.Boolean }),
  payload: { driver }
}) {}

/** Ends the move at this installation. Refused while jobs are not transferred yet. */
export class Forget extends Schema.TaggedRequest<Forget>()("Forget", {
  failure: Schema.Never,
  success: changed,
  payload: { driver }
}) {}

export const MoveRequest = Schema.Union(
  Facts,
  Begin,
  Split,
  ReadPage,
  ReadPageWithChanges,
  WritePage,
  Filled,
  Parts,
  Arrived,
  ReadChanges,
  WriteChanges,
  Acknowledge,
  Sample,
  Compare,
  Count,
  Originals,
  MissingOriginals,
  Hold,
  Progress,
  EndRunning,
  Fence,
  HandOver,
  Serve,
  Release,
  ReadJobs,
  WriteJobs,
  AcknowledgeJobs,
  ReadEvents,
  WriteEvents,
  RemoveSome,
  Forget
)
export type MoveRequest = typeof MoveRequest.Type

/** The schema of the answer to each request, by its tag. */
export const moveAnswers: ReadonlyMap<string, Schema.Schema.AnyNoContext> = new Map(
  MoveRequest.members.map((member) => [member._tag, member.success])
)
