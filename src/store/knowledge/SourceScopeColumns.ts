/** Scopes of sources in columns: what was said under one is read and continued under the same one. */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as Schema from "effect/Schema"
import type { ReadScope } from "../../domain/accounts/Access.ts"
import { SourceScope } from "../../domain/knowledge/SourceScope.ts"

const encode = Schema.encodeSync(Schema.parseJson(SourceScope))

/** A scope as `jsonb` takes it, the same for the same scope; null for none. */
export const sourceScopeJson = ({ sourceScope }: Pick<ReadScope, "sourceScope">): string | null =>
  sourceScope === null ? null : encode(sourceScope)

/** True of a row with a column `source_scope` that a key with this scope may read: without a scope, every row. */
export const readableUnder = (
  sql: SqlClient.SqlClient,
  { sourceScope }: Pick<ReadScope, "sourceScope">,
  column: string
) => (sourceScope === null ? sql`true` : sql`${sql(column)} = ${sourceScopeJson({ sourceScope })}::jsonb`)
