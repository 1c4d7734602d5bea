import { expect, it } from "vitest"
import { urlOf } from "../../src/domain/Address.ts"

it("an address with letters beyond ASCII stays one, however often addresses are read", () => {
  for (let round = 0; round < 50_000; round++) {
    if (urlOf("https://b\u00fccher.example/\u00e4")?.host !== "xn--bcher-kva.example") expect(round).toBe(-1)
  }
})

it("what is no address is none", () => {
  expect([urlOf("no address"), urlOf("//host/path"), urlOf("http://")]).toEqual([null, null, null])
  expect(urlOf("../up?q", "https://a.example/b/c")?.href).toBe("https://a.example/up?q")
})
