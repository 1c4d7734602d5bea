/** The audit trail: actor, action and time. An entry is written before the action's result is returned. */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Actor, AuditEntry } from "../domain/accounts/Audit.ts"
import type { TenantId } from "../domain/Ids.ts"
import type { Page } from "../domain/Page.ts"

export { Actor, AuditEntry }

/** An entry to record. The log adds its id and its time. Names are not recorded: they are looked up when it is read. */
export interface AuditRecord extends Omit<AuditEntry, "id" | "at" | "actorName" | "targetName"> {
  readonly tenantId: TenantId
}

/** The entry could not be written. The recorded action must not happen then. */
export class AuditUnavailable extends Schema.TaggedError<AuditUnavailable>()("AuditUnavailable", {
  cause: Schema.Defect
}) {}

export class AuditLog extends Context.Tag("capabilities/AuditLog")<
  AuditLog,
  {
    /** Durable once it returns. */
    readonly record: (entry: AuditRecord) => Effect.Effect<void, AuditUnavailable>
    /** Newest first; `after` is the id of the last entry of the previous page. */
    readonly list: (
      tenantId: TenantId,
      page: { readonly limit: number; readonly after?: string | undefined }
    ) => Effect.Effect<Page<AuditEntry>>
  }
>() {}
