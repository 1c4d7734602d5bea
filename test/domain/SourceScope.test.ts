import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { SourceId } from "../../src/domain/Ids.ts"
import { intersectScopes, type SourceScope } from "../../src/domain/knowledge/SourceScope.ts"

const label = FastCheck.constantFrom("a", "b", "c")
const id = FastCheck.constantFrom(SourceId.make("src_1"), SourceId.make("src_2"), SourceId.make("src_3"))
const scope: FastCheck.Arbitrary<SourceScope> = FastCheck.oneof(
  FastCheck.record({ labels: FastCheck.uniqueArray(label) }),
  FastCheck.record({ labels: FastCheck.uniqueArray(label), sourceIds: FastCheck.uniqueArray(id) })
)
const source = FastCheck.record({ id, labels: FastCheck.uniqueArray(label) })

/** The rule, as plainly as it can be written. */
const mayRead = (
  { labels, sourceIds }: SourceScope,
  one: { readonly id: SourceId; readonly labels: ReadonlyArray<string> }
): boolean =>
  (one.labels.length === 0 || one.labels.some((each) => labels.includes(each))) &&
  (sourceIds === undefined || sourceIds.includes(one.id))

describe("A scope narrowed by another", () => {
  it.prop("reads nothing that one of them does not", [scope, scope, source], ([one, other, read]) => {
    if (mayRead(intersectScopes(one, other), read))
      expect([mayRead(one, read), mayRead(other, read)]).toEqual([true, true])
  })

  it.prop(
    "reads what both do by the same label, or without one",
    [scope, scope, source],
    ([one, other, read]) => {
      const alike = read.labels.some((each) => one.labels.includes(each) && other.labels.includes(each))
      if (mayRead(one, read) && mayRead(other, read) && (alike || read.labels.length === 0))
        expect(mayRead(intersectScopes(one, other), read)).toBe(true)
    }
  )

  it.prop("is the other where there is none", [scope], ([one]) => {
    expect(intersectScopes(null, one)).toEqual(one)
  })
})
