import * as Either from "effect/Either"
import { describe, expect, it } from "vitest"
import { patchGroup, patchPerson, readFilter, readPerson } from "../../src/domain/accounts/Scim.ts"

const core = "urn:ietf:params:scim:schemas:core:2.0:User"
const patch = (
  ...operations: ReadonlyArray<Readonly<Record<string, string | { [name: string]: unknown }>>>
) => JSON.parse(JSON.stringify({ Operations: operations }))
const right = <A, E>(read: Either.Either<A, E>) => Either.getOrNull(read)

describe("A change of a person by SCIM", () => {
  it("may have its attributes below the name of the schema", () => {
    for (const operation of [
      { op: "replace", value: { [core]: { active: "False" } } },
      { op: "replace", path: core, value: { active: false } },
      { op: "Replace", path: `${core}:active`, value: "False" }
    ])
      expect(right(patchPerson(patch(operation)))).toEqual({ active: false })
  })

  it("takes no time for attributes that are not kept", () => {
    const body = (count: number) =>
      Object.fromEntries([
        ["userName", "a@b.example"],
        ...Array.from({ length: count }, (_, place) => [`x${place}`, 1])
      ])
    const large = body(80_000)
    expect(right(readPerson(large))).toEqual({ userName: "a@b.example" })
  })
})

describe("A change of a group by SCIM", () => {
  it("refuses a path of members that is not known", () => {
    expect(Either.isLeft(patchGroup(patch({ op: "remove", path: 'members[display eq "Ada"]' })))).toBe(true)
  })
})

describe("A filter of SCIM", () => {
  const read = (text: string) => right(readFilter(text, ["members", "displayName"]))

  it("names members in each of the usual ways", () => {
    for (const text of ['members eq "usr_1"', 'members.value eq "usr_1"', 'members[value eq "usr_1"]'])
      expect(read(text)).toEqual([{ name: "members", value: "usr_1" }])
  })

  it("does not end with and", () => {
    expect(read('displayName eq "A" and ')).toBe(null)
    expect(read('displayName eq "A" and members eq "usr_1" ')).toHaveLength(2)
  })
})
