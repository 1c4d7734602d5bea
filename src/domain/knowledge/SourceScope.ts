/**
 * Labels of sources, and the scope that limits a key to some of them. A source without labels is visible under every scope; one
 * with labels only under a scope that has at least one of them.
 */
import * as Schema from "effect/Schema"
import { SourceId } from "../Ids.ts"
import { trimmed } from "../Text.ts"

const maxLabels = 20
const maxSourceIds = 100

/** An array with distinct items in order, so that lists with the same items are equal. */
const sortedArray = <A extends string, I>(items: Schema.Schema<A, I>, max: number) =>
  Schema.Array(items).pipe(
    Schema.maxItems(max),
    Schema.transform(Schema.Array(Schema.typeSchema(items)), {
      strict: true,
      decode: (all) => [...new Set(all)].toSorted(),
      encode: (all) => all
    })
  )

/** 1 to 64 characters after trimming; case-sensitive. */
const SourceLabel = trimmed(64)
/** At most 20 labels. */
export const SourceLabels = sortedArray(SourceLabel, maxLabels)
const SourceIds = sortedArray(SourceId, maxSourceIds)

/** Which sources a key may read. */
export const SourceScope = Schema.Struct({
  /** Without labels, only sources without labels are visible. */
  labels: Schema.optionalWith(SourceLabels, { exact: true, default: () => [] }),
  /** Only these sources, of those that the labels make visible. All of them when omitted, none when empty. */
  sourceIds: Schema.optionalWith(SourceIds, { exact: true })
})
export type SourceScope = typeof SourceScope.Type

/** Sees only sources without labels. */
export const openScope: SourceScope = { labels: [] }

const itemsInBoth = <A>(one: ReadonlyArray<A>, other: ReadonlyArray<A>) =>
  one.filter((item) => other.includes(item))

/**
 * The intersection of two scopes; null is the scope of all sources. It also leaves out sources that each scope shows by a
 * different label.
 */
export const intersectScopes = (one: SourceScope | null, other: SourceScope): SourceScope => {
  if (one === null) return other
  const labels = itemsInBoth(one.labels, other.labels)
  const sourceIds =
    one.sourceIds === undefined || other.sourceIds === undefined
      ? (one.sourceIds ?? other.sourceIds)
      : itemsInBoth(one.sourceIds, other.sourceIds)
  return { labels, ...(sourceIds === undefined ? {} : { sourceIds }) }
}
