/** Which sources a search may read, as SQL says it: `source_is_visible` of the migrations is the rule. */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import type { ReadScope } from "../../domain/accounts/Access.ts"
import type { SearchQuery } from "../VectorSearch.ts"

/** What a source has to meet, as JSON: the scope and the filter of the request, both. Null: nothing. */
export const filtersOf = (
  { sourceScope }: Pick<ReadScope, "sourceScope">,
  { filter }: Pick<SearchQuery, "filter">
): string | null => {
  const filters = [sourceScope, filter].filter((one) => one !== null && one !== undefined)
  return filters.length === 0 ? null : JSON.stringify(filters)
}

/** True of the row `sources` when it meets `filters`, which are JSON or SQL of it. */
export const isVisible = (sql: SqlClient.SqlClient, filters: string | Fragment) =>
  sql`source_is_visible(id, type, labels, config -> 'metadata', ${filters}::jsonb)`
