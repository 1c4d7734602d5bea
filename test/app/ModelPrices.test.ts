/** Prices of models as a setting: inline or in a file, refused with what is wrong and where. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import { fromRecord } from "../../src/app/config/Config.ts"

const read = (environment: Readonly<Record<string, string>>) =>
  Effect.runPromise(Effect.either(fromRecord(environment, false)))

const problemOf = async (prices: string) => {
  const outcome = await read({ SPOKE_MODEL_PRICES: prices })
  return outcome._tag === "Left" ? outcome.left.problems.map(({ message }) => message).join("\n") : "none"
}

describe("SPOKE_MODEL_PRICES", () => {
  const list = [
    { model: "azure/chat", input: 0.4, cachedInput: 0.1, output: 1.6 },
    { model: "ollama/*", input: 0, output: 0, long: { above: 1_000, input: 1, output: 2 } }
  ]
  const expected = [
    { model: "azure/chat", input: 0.4, cachedInput: 0.1, output: 1.6 },
    {
      model: "ollama/*",
      input: 0,
      cachedInput: 0,
      output: 0,
      long: { above: 1_000, input: 1, cachedInput: 1, output: 2 }
    }
  ]

  it("is JSON, inline or in a file; cached input costs as much as other input where it is left out", async () => {
    const inline = await read({ SPOKE_MODEL_PRICES: JSON.stringify(list) })
    expect(inline._tag === "Right" && inline.right.modelPrices).toEqual(expected)
    const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-prices-"))
    const file = Path.join(folder, "prices.json")
    Fs.writeFileSync(file, JSON.stringify(list, null, 2))
    const given = await read({ SPOKE_MODEL_PRICES_FILE: file })
    Fs.rmSync(folder, { recursive: true })
    expect(given._tag === "Right" && given.right.modelPrices).toEqual(expected)
  })

  it("is refused with the places of what does not fit, and no value is repeated", async () => {
    const good = { model: "azure/canary", input: 1, output: 1 }
    expect(await problemOf("canary")).toContain("Expected a JSON list")
    expect(await problemOf(JSON.stringify([good, { ...good, input: -1 }]))).toContain("(see entry 2, input)")
    expect(await problemOf(JSON.stringify([{ ...good, model: "canary" }]))).toContain("(see entry 1, model)")
    expect(await problemOf(JSON.stringify([{ ...good, ouput: 1 }]))).toContain("entry 1, ouput")
    expect(await problemOf(JSON.stringify([{ model: "a/b", long: { above: 0 } }]))).toContain(
      "entry 1, long.above"
    )
    for (const wrong of ["canary", JSON.stringify([{ ...good, input: "canary" }])])
      expect(await problemOf(wrong)).not.toContain("canary")
  })
})
