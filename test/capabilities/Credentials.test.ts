/** One suite on every backend: what is made cannot be guessed, what is stored cannot be turned back. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Credentials } from "../../src/capabilities/Credentials.ts"
import { layerScrypt } from "../../src/capabilities/Credentials/Scrypt.ts"

const owner = "somebody"
const cheap = { log2N: 10, r: 8, p: 1 }

const suite = (name: string, backend: Layer.Layer<Credentials>, other: Layer.Layer<Credentials>) =>
  describe(name, () => {
    const live = (title: string, test: Effect.Effect<void, unknown, Credentials>) =>
      it.live(title, () => Effect.provide(test, backend))

    live(
      "makes tokens of 43 characters, none of them twice",
      Effect.gen(function* () {
        const { token } = yield* Credentials
        const tokens = yield* Effect.replicateEffect(token, 200)
        expect(tokens.every((made) => /^[\w-]{43}$/u.test(made))).toBe(true)
        expect(new Set(tokens).size).toBe(200)
      })
    )

    live(
      "has one fingerprint of a token: its SHA-256",
      Effect.gen(function* () {
        const { fingerprint } = yield* Credentials
        const of = (text: string) =>
          Effect.map(fingerprint(Redacted.make(text)), (bytes) => Buffer.from(bytes).toString("hex"))
        expect(yield* of("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        expect(yield* of("abd")).not.toBe(yield* of("abc"))
      })
    )

    live(
      "knows a password again by a hash that does not hold it, and no other password",
      Effect.gen(function* () {
        const { hashPassword, verifyPassword } = yield* Credentials
        const password = Redacted.make("correct horse battery é")
        const [one, two] = [yield* hashPassword(password, owner), yield* hashPassword(password, owner)]
        expect(one).not.toBe(two)
        expect(`${one}${two}`).not.toContain("horse")
        for (const hash of [one, two]) {
          expect(yield* verifyPassword(password, hash, owner)).toBe(true)
          // The same letter as another keyboard writes it.
          expect(yield* verifyPassword(Redacted.make("correct horse battery e\u0301"), hash, owner)).toBe(
            true
          )
          for (const wrong of ["correct horse battery e", "", "correct horse battery é "])
            expect(yield* verifyPassword(Redacted.make(wrong), hash, owner)).toBe(false)
        }
      })
    )

    live(
      "says no for nobody, and for what is no hash, after as much work",
      Effect.gen(function* () {
        const { verifyPassword } = yield* Credentials
        for (const hash of [null, "", "plain", "$scrypt$ln=10,r=8,p=1$AAAA$AAAA"])
          expect(yield* verifyPassword(Redacted.make("x"), hash, owner)).toBe(false)
      })
    )

    live(
      "knows passwords that were hashed at another cost",
      Effect.gen(function* () {
        const password = Redacted.make("moved")
        const hash = yield* Effect.flatMap(Credentials, ({ hashPassword }) =>
          hashPassword(password, owner)
        ).pipe(Effect.provide(other))
        expect(yield* (yield* Credentials).verifyPassword(password, hash, owner)).toBe(true)
      })
    )

    live(
      "refuses at once what it cannot take on, and goes on afterwards",
      Effect.gen(function* () {
        const { hashPassword, verifyPassword } = yield* Credentials
        const password = Redacted.make("many")
        const asked = Array.from({ length: 200 }, () => Effect.either(hashPassword(password, owner)))
        const answers = yield* Effect.all(asked, { concurrency: "unbounded" })
        const refused = answers.filter(Either.isLeft)
        expect(refused.length).toBeGreaterThan(0)
        expect(refused.length).toBeLessThan(200)
        expect(refused.every(({ left }) => left._tag === "CredentialsBusy")).toBe(true)
        expect(yield* verifyPassword(password, yield* hashPassword(password, owner), owner)).toBe(true)
      })
    )

    live(
      "serves owners in turns: one with a full line keeps nobody else waiting, nor has them refused",
      Effect.gen(function* () {
        const { hashPassword } = yield* Credentials
        const order: Array<string> = []
        const hash = (of: string) =>
          hashPassword(Redacted.make("many"), of).pipe(
            Effect.tap(() => Effect.sync(() => order.push(of))),
            Effect.either
          )
        const crowd = yield* Effect.fork(
          Effect.all(
            Array.from({ length: 200 }, () => hash("crowd")),
            { concurrency: "unbounded" }
          )
        )
        yield* Effect.yieldNow()
        for (const of of ["one", "two", "three"]) expect(Either.isRight(yield* hash(of))).toBe(true)
        // The crowd has two of the three hashes at a time: it is far from its end.
        expect(order.filter((of) => of === "crowd").length).toBeLessThan(40)
        yield* Fiber.interrupt(crowd)
        expect(Either.isRight(yield* hash("crowd"))).toBe(true)
      })
    )
  })

suite("Credentials by scrypt", layerScrypt(cheap), layerScrypt({ log2N: 11, r: 4, p: 2 }))
