import * as Path from "node:path"
import { describe, expect, it } from "vitest"

const { timesOf } = await import(Path.resolve(import.meta.dirname, "../../bench/profiles/shares.mjs"))

const node = (id: number, functionName: string, url: string, children: ReadonlyArray<number> = []) => ({
  id,
  callFrame: { functionName, url, lineNumber: 0, columnNumber: 0 },
  children
})

describe("The shares of a CPU profile", () => {
  it("count time for the part of the program whose function runs, and the engine's functions for their caller", () => {
    const nodes = [
      node(1, "(root)", "", [2, 3, 4, 5]),
      node(2, "(idle)", ""),
      node(3, "(garbage collector)", ""),
      node(4, "onRead", "node:net", [6]),
      node(5, "decode", "/app/node_modules/effect/src/ParseResult.ts", [7]),
      node(6, "run", "/app/node_modules/effect/src/internal/fiberRuntime.ts"),
      node(7, "parse", "")
    ]
    const samples = [2, 3, 4, 5, 6, 7]
    const timeDeltas = [9_000, 1_000, 2_000, 3_000, 4_000, 5_000]
    expect(timesOf({ nodes, samples, timeDeltas })).toEqual({
      "garbage collection": 1,
      Node: 2,
      "decoding and encoding": 8,
      "Effect runtime": 4
    })
  })
})
