import { afterAll, describe, expect, it } from "@effect/vitest"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Fiber from "effect/Fiber"
import { randomUUID } from "node:crypto"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { ArtifactStore, layerMemory, refOf } from "../../src/capabilities/ArtifactStore.ts"
import { layerDisk } from "../../src/capabilities/ArtifactStore/Disk.ts"
import { layerS3, type S3Options } from "../../src/capabilities/ArtifactStore/S3.ts"
import { bucket, s3Server } from "./S3Server.ts"
import { artifactStoreSuite } from "./ArtifactStoreSuite.ts"

const root = fs.mkdtempSync(path.join(os.tmpdir(), "spoke-artifacts-"))
afterAll(() => fs.rmSync(root, { recursive: true, force: true }))

artifactStoreSuite("memory", layerMemory)
artifactStoreSuite("disk", layerDisk(path.join(root, "suite")))

const s3 = (url: string, changes: Partial<S3Options> = {}) =>
  layerS3({
    bucket,
    prefix: "some/where",
    region: "eu-central-1",
    endpoint: url,
    accessKeyId: Redacted.make("S3RVER"),
    secretAccessKey: Redacted.make("S3RVER"),
    sessionToken: null,
    ...changes
  }).pipe(Layer.provide(NodeHttpClient.layerUndici))

artifactStoreSuite("S3", Layer.unwrapScoped(Effect.map(s3Server, ({ url }) => s3(url))))

const hello = new TextEncoder().encode("hello")
const digest = refOf(hello).slice("sha256:".length)

/** Names and modes of all files below a directory. */
const filesBelow = (directory: string) =>
  fs
    .readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))

const nextTick = Effect.async<void>((resume) => void setImmediate(() => resume(Effect.void)))

const mode = (file: string) => (fs.statSync(file).mode & 0o777).toString(8)

/** Runs with a store in a directory of its own. */
const onDisk = <A, E>(use: (store: ArtifactStore["Type"], directory: string) => Effect.Effect<A, E>) =>
  Effect.suspend(() => {
    const directory = path.join(fs.mkdtempSync(path.join(root, "test-")), "artifacts")
    return Effect.flatMap(ArtifactStore, (store) => use(store, directory)).pipe(
      Effect.provide(layerDisk(directory))
    )
  })

describe("artifacts on disk", () => {
  it.live("are files only their owner can read, fanned out by the first digits of their name", () =>
    onDisk((store, directory) =>
      Effect.gen(function* () {
        yield* store.put(hello)
        const file = path.join(directory, digest.slice(0, 2), digest)
        expect(filesBelow(directory)).toEqual([file])
        expect([mode(file), mode(path.dirname(file)), mode(directory)]).toEqual(["600", "700", "700"])
      })
    )
  )

  it.live("outlive the process", () =>
    onDisk((store, directory) =>
      Effect.gen(function* () {
        const ref = yield* store.put(hello)
        const again = yield* Effect.flatMap(ArtifactStore, (other) => other.get(ref)).pipe(
          Effect.provide(layerDisk(directory))
        )
        expect(again).toMatchObject({ _tag: "Some" })
      })
    )
  )

  it.live("that were damaged are an error, not other bytes; storing them again mends them", () =>
    onDisk((store, directory) =>
      Effect.gen(function* () {
        const ref = yield* store.put(hello)
        fs.writeFileSync(path.join(directory, digest.slice(0, 2), digest), "hellp")
        const error = yield* Effect.flip(store.get(ref))
        expect(error.message).toBe(`The artifact ${ref} is damaged on the disk.`)
        yield* store.put(hello)
        expect(yield* store.get(ref)).toMatchObject({ _tag: "Some" })
      })
    )
  )

  it.live("leave nothing unfinished behind when storing is interrupted", () =>
    onDisk((store, directory) =>
      Effect.gen(function* () {
        const bytes = new Uint8Array(32 * 1_024 * 1_024)
        const ref = refOf(bytes)
        const running = yield* Effect.fork(store.put(bytes))
        const begun = Effect.sync(() => filesBelow(directory).length > 0)
        yield* Effect.repeat(Effect.zipRight(nextTick, begun), { until: (yes) => yes })
        yield* Fiber.interrupt(running)
        expect(filesBelow(path.join(directory, "unfinished"))).toEqual([])
        // Whole or not at all.
        yield* store.get(ref)
      })
    )
  )

  it.live("that a dead process left unfinished go at the next start, others stay", () =>
    onDisk((_, directory) =>
      Effect.gen(function* () {
        const old = path.join(directory, "unfinished", "old")
        const fresh = path.join(directory, "unfinished", "fresh")
        fs.writeFileSync(old, "half")
        fs.writeFileSync(fresh, "half")
        fs.utimesSync(old, 0, 0)
        yield* Effect.void.pipe(Effect.provide(layerDisk(directory)))
        expect(filesBelow(directory)).toEqual([fresh])
      })
    )
  )

  it.live("in S3 are received in files that go at the next start when their process was killed", () =>
    Effect.gen(function* () {
      const file = (name: string) => path.join(os.tmpdir(), name)
      const old = file(`spoke-${randomUUID()}`)
      const fresh = file(`spoke-${randomUUID()}`)
      const other = file(`spoke-${randomUUID()}.txt`)
      for (const one of [old, fresh, other]) fs.writeFileSync(one, "half")
      for (const one of [old, other]) fs.utimesSync(one, 0, 0)
      yield* Effect.void.pipe(Effect.provide(s3("http://127.0.0.1:1")))
      const left = [old, fresh, other].filter((one) => fs.existsSync(one))
      for (const one of left) fs.rmSync(one)
      expect(left).toEqual([fresh, other])
    })
  )

  it.live("that cannot be written fail with what the system says, without a path", () =>
    onDisk((store, directory) =>
      Effect.gen(function* () {
        fs.writeFileSync(path.join(directory, digest.slice(0, 2)), "in the way")
        const error = yield* Effect.flip(store.put(hello))
        expect(error._tag).toBe("ArtifactStoreError")
        expect(error.message).toMatch(/\((EEXIST|ENOTDIR)\)\.$/)
        expect(error.message).not.toContain(directory)
      })
    )
  )

  it.live("need a directory: the layer fails when it cannot be made", () =>
    Effect.gen(function* () {
      const file = path.join(root, "a-file")
      fs.writeFileSync(file, "")
      const error = yield* Effect.flip(Effect.void.pipe(Effect.provide(layerDisk(path.join(file, "below")))))
      expect(error._tag).toBe("ArtifactStoreError")
    })
  )
})

describe("artifacts in a bucket", () => {
  it.scopedLive("survive a store that is busy for a moment", () =>
    Effect.gen(function* () {
      const { breakFor, url } = yield* s3Server
      yield* Effect.gen(function* () {
        const store = yield* ArtifactStore
        breakFor(2)
        const ref = yield* store.put(hello)
        breakFor(1)
        expect(yield* store.get(ref)).toMatchObject({ _tag: "Some" })
        breakFor(10)
        expect((yield* Effect.flip(store.remove(ref))).message).toBe(
          "The artifact could not be removed (S3: 503 SlowDown)."
        )
      }).pipe(Effect.provide(s3(url)))
    })
  )

  it.scopedLive(
    "need the right key, an existing bucket and a store that answers; the error names no secret",
    () =>
      Effect.gen(function* () {
        const { url } = yield* s3Server
        const secret = "secret-canary-5e1f"
        const wrong: ReadonlyArray<readonly [string, Partial<S3Options>, RegExp]> = [
          [
            url,
            { accessKeyId: Redacted.make(secret), secretAccessKey: Redacted.make(secret) },
            /403 InvalidAccessKeyId/
          ],
          [url, { bucket: "elsewhere" }, /404 NoSuchBucket/],
          ["http://127.0.0.1:1", {}, /no answer/]
        ]
        for (const [address, changes, words] of wrong) {
          const error = yield* Effect.flip(
            Effect.flatMap(ArtifactStore, (store) => store.put(hello)).pipe(
              Effect.provide(s3(address, changes))
            )
          )
          expect(error.message).toMatch(words)
          expect(JSON.stringify(error)).not.toContain(secret)
        }
      })
  )
})
