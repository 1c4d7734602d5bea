/**
 * The sources that a search may read, as SQL. The function `source_is_visible` in the migrations implements the rule.
 */
import type * as SqlClient from "@effect/sql/SqlClient"
import type { Fragment } from "@effect/sql/Statement"
import type { ReadScope } from "../../domain/accounts/Access.ts"
import type { SearchQuery } from "../VectorSearch.ts"

/** Conditions on a source, as JSON: the scope and the filter of the request. Null for none. */
export const filtersOf = (
  { sourceScope }: Pick<ReadScope, "sourceScope">,
  { filter }: Pick<SearchQuery, "filter">
): string | null => {
  const filters = [sourceScope, filter].filter((one) => one !== null && one !== undefined)
  return filters.length === 0 ? null : JSON.stringify(filters)
}

/** True for the row `sources` when it meets `filters`, which are JSON or SQL for it. */
export const isVisible = (sql: SqlClient.SqlClient, filters: string | Fragment) =>
  sql`source_is_visible(id, type, labels, config -> 'metadata', ${filters}::jsonb)`
