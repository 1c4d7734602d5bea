/** Source scopes in columns. A conversation is read and continued only under the scope in which it began. */
import type * as SqlClient from "@effect/sql/SqlClient"
import * as Schema from "effect/Schema"
import type { ReadScope } from "../../domain/accounts/Access.ts"
import { SourceScope } from "../../domain/knowledge/SourceScope.ts"

const encode = Schema.encodeSync(Schema.parseJson(SourceScope))

/** The scope as canonical `jsonb` text; null for none. */
export const sourceScopeJson = ({ sourceScope }: Pick<ReadScope, "sourceScope">): string | null =>
  sourceScope === null ? null : encode(sourceScope)

/**
 * True for a row with a column `source_scope` that a key with this scope may read. Without a scope it is true for every
 * row.
 */
export const readableUnder = (
  sql: SqlClient.SqlClient,
  { sourceScope }: Pick<ReadScope, "sourceScope">,
  column: string
) => (sourceScope === null ? sql`true` : sql`${sql(column)} = ${sourceScopeJson({ sourceScope })}::jsonb`)
