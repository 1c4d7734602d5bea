import * as FastCheck from "effect/FastCheck"
import { describe, expect, it } from "vitest"
import { isChanged, rebase } from "../../src/ui/dashboard/forms/merge.ts"
import { parseOrigins, validOrigins } from "../../src/ui/dashboard/pages/agents/parseOrigins.ts"

const form = (name: string, text: string) => ({ name, text })

describe("Concurrent changes of a form", () => {
  it("are merged: a field that one of them changed takes the change, and one that both changed is a conflict", () => {
    const mine = { base: form("a", "b"), mine: form("a", "mine"), theirs: {} }
    expect(rebase(mine, form("theirs", "b"))).toEqual({
      base: form("theirs", "b"),
      mine: form("theirs", "mine"),
      theirs: {}
    })
    const both = rebase(mine, form("a", "theirs"))
    expect(both).toEqual({ base: form("a", "theirs"), mine: form("a", "mine"), theirs: { text: "theirs" } })
    expect(isChanged(both)).toBe(true)
    // The same change of both is none.
    expect(rebase(mine, form("a", "mine"))).toMatchObject({ theirs: {} })
    // A third change takes the place of the second.
    expect(rebase(both, form("a", "third")).theirs).toEqual({ text: "third" })
    expect(rebase(both, form("a", "mine")).theirs).toEqual({})
  })

  it("keep the typed value of every field, with the stored one in it or beside it", () => {
    const text = FastCheck.constantFrom("1", "2", "3")
    const fields = FastCheck.record({ name: text, text })
    FastCheck.assert(
      FastCheck.property(fields, fields, FastCheck.array(fields, { minLength: 1 }), (base, mine, stores) => {
        let edited = { base, mine, theirs: {} }
        for (const stored of stores) edited = { ...edited, ...rebase(edited, stored) }
        const last = stores.at(-1) ?? base
        const shown = { ...edited.mine, ...edited.theirs }
        for (const name of ["name", "text"] as const) {
          // What is stored is shown, unless it is what the changes were made from.
          expect([edited.mine[name], shown[name], edited.base[name]]).toContain(last[name])
          if (mine[name] !== base[name] && stores.every((stored) => stored[name] === base[name])) {
            expect(edited.mine[name]).toBe(mine[name])
          }
        }
        expect(edited.base).toEqual(last)
      })
    )
  })
})

describe("Websites as they are typed", () => {
  it("become the origins that are meant, and say where a scheme was added", () => {
    const origins = (typed: string) =>
      parseOrigins(typed).map(({ isSchemeGuessed, origin }) => [origin, isSchemeGuessed])
    expect(origins("https://www.Example.com/shop?page=2#top\n HTTP://example.com:80 ")).toEqual([
      ["https://www.example.com", false],
      ["http://example.com", false]
    ])
    expect(origins("www.example.com/shop, example.com:8443")).toEqual([
      ["https://www.example.com", true],
      ["https://example.com:8443", true]
    ])
    for (const local of ["localhost:3000", "127.0.0.1:8080/x", "[::1]:3000", "shop.local", "192.168.1.2"]) {
      expect(origins(local)).toEqual([[`http://${local.replace("/x", "")}`, true]])
    }
    for (const none of [
      "ftp://example.com",
      "*.example.com",
      "https://*.example.com",
      "https://u:p@a.b",
      "https://",
      "?"
    ]) {
      expect(origins(none)).toEqual([[null, false]])
    }
    expect(validOrigins(parseOrigins("example.com https://example.com"))).toEqual(["https://example.com"])
    expect(parseOrigins(" \n ")).toEqual([])
  })
})
