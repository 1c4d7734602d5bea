/** Packages that are loaded when they are used: there, not there, and broken. */
import * as Fs from "node:fs"
import * as Path from "node:path"
import { expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { describe } from "vitest"
import { optional, optionalPackages } from "../../src/domain/OptionalPackage.ts"

const manifest = JSON.parse(Fs.readFileSync(Path.join(import.meta.dirname, "../../package.json"), "utf8"))

/** What Node throws. */
const thrown = (code: string) => Promise.reject(Object.assign(new Error("Cannot find package"), { code }))

describe("An optional package", () => {
  it.effect("is what was loaded", () =>
    Effect.gen(function* () {
      const { getDocumentProxy } = yield* optional("Reading PDF files", () => import("unpdf"))
      expect(getDocumentProxy).toBeTypeOf("function")
    })
  )

  it.effect("is missing with its name and the command that installs it", () =>
    Effect.gen(function* () {
      for (const code of ["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"]) {
        const missing = yield* Effect.flip(optional("Reading text in images", () => thrown(code)))
        expect(missing._tag).toBe("PackageMissing")
        expect(missing.packages).toEqual(["tesseract.js", "@tesseract.js-data/eng"])
        expect(missing.message).toBe(
          "Reading text in images needs the packages tesseract.js and @tesseract.js-data/eng, which Spoke does not bring: " +
            "npm install tesseract.js @tesseract.js-data/eng"
        )
      }
    })
  )

  it.effect("that is there and does not load is a defect, not missing", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(optional("Redis (REDIS_URL)", () => thrown("ERR_DLOPEN_FAILED")))
      expect(Exit.isFailure(exit) && Cause.isDie(exit.cause)).toBe(true)
    })
  )

  it("is one of the manifest's optional peers, which a clone has", () => {
    for (const name of Object.values(optionalPackages).flat()) {
      expect(manifest.peerDependencies[name]).toBeTypeOf("string")
      expect(manifest.peerDependenciesMeta[name]).toEqual({ optional: true })
      expect(manifest.devDependencies[name]).toBe(manifest.peerDependencies[name].replace("^", ""))
    }
  })

  it("is no dependency, and neither is anything that Spoke's bundle holds", () => {
    const needed = Object.keys(manifest.dependencies)
    expect(needed.filter((name) => !/^@(?:electric-sql|energetic-ai)\//.test(name))).toEqual([])
  })
})
