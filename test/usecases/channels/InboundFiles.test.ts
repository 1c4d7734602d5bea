import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import { ArtifactStore, refOf } from "../../../src/capabilities/ArtifactStore.ts"
import { ChannelError } from "../../../src/capabilities/ChannelAdapters.ts"
import { Inbound } from "../../../src/usecases/channels/Inbound.ts"
import { Artifacts } from "../../../src/usecases/knowledge/Artifacts.ts"
import * as Fixtures from "../../Fixtures.ts"
import { failsOnce } from "../../FailingWrites.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { Script } from "../chat/TurnHarness.ts"
import {
  accept,
  channelOf,
  failures,
  inboundLayer,
  job,
  message,
  provided,
  receive,
  states,
  transcript
} from "./InboundHarness.ts"

const png = Uint8Array.from([0x89, ...Buffer.from("PNG\r\n\u001a\n"), 1, 2, 3, 4, 5])
const jpeg = Uint8Array.from([0xff, 0xd8, 0xff, 0xe0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
const pdf = Buffer.from("%PDF-1.7 and so on")
const sound = Buffer.from("OggS and so on")

const onFreshData = <A, E, R>(test: Effect.Effect<A, E, R>) =>
  Effect.sync(() => {
    failures.length = 0
    provided.clear()
    provided.set("png", { bytes: png, mimeType: "image/png" })
    provided.set("jpeg", { bytes: jpeg, mimeType: "image/png" })
    provided.set("pdf", { bytes: pdf, mimeType: "application/pdf" })
    provided.set("sound", { bytes: sound, mimeType: "audio/ogg; codecs=opus" })
    provided.set("page", { bytes: Buffer.from("<script>alert(1)</script>"), mimeType: "text/html" })
  }).pipe(Effect.zipRight(reset), Effect.zipRight(Effect.provide(test, inboundLayer())))

const attachments = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly files: ReadonlyArray<Record<string, unknown>> }>`
    select attachments as files from messages where role = 'user' order by position`
).pipe(Effect.map((rows) => rows.map(({ files }) => files)))

const asked = Effect.gen(function* () {
  const requests = yield* Ref.get((yield* Script).requests)
  return requests.map(({ prompt }) =>
    prompt.content.flatMap(({ content, role }) =>
      role === "user" ? content.flatMap((part) => (part.type === "file" ? [part.data] : [])) : []
    )
  )
})

const kept = Effect.map(
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`select from artifact_claims union all select from messages where attachments <> '[]'`
  ),
  (rows) => rows.length
)

eachEngineLive("A file of a channel's message", (it) => {
  it.scoped("is accepted with any name: NUL and lone surrogates are removed", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      const media = [
        {
          kind: "document",
          id: "pdf",
          fileName: "a\u0000\ud800b\\u0000😀\udc00.pdf",
          mimeType: "\u0000"
        } as const
      ]
      yield* receive(yield* message({ kind: "media", text: "See \u0000\udfff", media }))
      expect((yield* attachments)[0]?.[0]).toMatchObject({ name: "a\ufffdb\\u0000😀\ufffd.pdf" })
      expect((yield* transcript)[0]).toBe("1 user: See \ufffd")
    }).pipe(onFreshData)
  )

  it.scoped("is stored with the message, and passed to a model that can read it", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      yield* receive(
        yield* message({ kind: "media", text: "", media: [{ kind: "image", id: "png" }] }),
        yield* message({
          kind: "media",
          text: "Which one?",
          media: [
            { kind: "document", id: "pdf", fileName: "offer.pdf" },
            { kind: "audio", id: "sound" }
          ]
        })
      )
      expect(yield* transcript).toEqual(["1 user: [image]", "2 user: Which one?", "3 agent: Hello"])
      expect(yield* attachments).toEqual([
        [{ artifact: refOf(png), mimeType: "image/png", name: "image.png", size: png.length }],
        [
          { artifact: refOf(pdf), mimeType: "application/pdf", name: "offer.pdf", size: pdf.length },
          { artifact: refOf(sound), mimeType: "audio/ogg", name: "audio", size: sound.length }
        ]
      ])
      expect(yield* asked).toEqual([[png, new Uint8Array(pdf)]])
      // The sweep keeps files of a conversation and removes those without one.
      const store = yield* ArtifactStore
      yield* (yield* Artifacts).sweep
      expect((yield* store.get(refOf(sound)))._tag).toBe("Some")
      const sql = yield* SqlClient.SqlClient
      yield* sql`delete from conversations`
      yield* (yield* Artifacts).sweep
      expect((yield* store.get(refOf(sound)))._tag).toBe("None")
    }).pipe(onFreshData)
  )

  it.scoped("has the type of its bytes, and none that a browser would execute", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      yield* receive(
        yield* message({
          kind: "media",
          media: [
            { kind: "image", id: "jpeg" },
            { kind: "document", id: "page", fileName: "a.html" }
          ]
        })
      )
      expect(yield* attachments).toMatchObject([
        [{ mimeType: "image/jpeg" }, { mimeType: "application/octet-stream", name: "a.html" }]
      ])
    }).pipe(onFreshData)
  )

  it.scoped("is fetched again after a temporary failure of the provider", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      failures.push(new ChannelError({ reason: "Unknown", message: "Lost.", retryable: true }))
      yield* receive(yield* message({ kind: "media", media: [{ kind: "image", id: "png" }] }))
      expect(yield* attachments).toMatchObject([[{ name: "image.png" }]])
    }).pipe(onFreshData)
  )

  it.scoped("that cannot be fetched, or is at an internal address, does not affect message and answer", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      yield* receive(
        yield* message({
          kind: "media",
          text: "",
          media: [
            { kind: "image", id: "gone" },
            { kind: "image", url: "http://169.254.169.254/latest/meta-data" },
            { kind: "video" },
            { kind: "image", id: "png" }
          ]
        })
      )
      expect(yield* transcript).toEqual(["1 user: [image] [image] [video] [image]", "2 agent: Hello"])
      expect(yield* attachments).toMatchObject([[{ name: "image.png" }]])
      provided.clear()
      yield* receive(yield* message({ kind: "media", text: "", media: [{ kind: "image", id: "png" }] }))
      expect((yield* attachments).at(-1)).toEqual([])
      expect((yield* asked).at(-1)).toEqual([])
      expect(yield* states).toEqual(["AI_ACTIVE"])
    }).pipe(onFreshData)
  )

  it.scoped("that is too large is not stored (10 MB for a picture)", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      const large = new Uint8Array(10 * 1_048_576 + 1)
      large.set(png)
      provided.set("large", { bytes: large, mimeType: "image/png" })
      yield* receive(yield* message({ kind: "media", text: "", media: [{ kind: "image", id: "large" }] }))
      expect(yield* transcript).toEqual(["1 user: [image]", "2 agent: Hello"])
      expect(yield* attachments).toEqual([[]])
      expect(yield* kept).toBe(0)
    }).pipe(onFreshData)
  )

  it.scoped("that cannot be stored now is stored by the next attempt; the last one answers without it", () =>
    Effect.gen(function* () {
      yield* channelOf(yield* Fixtures.agent())
      const inbound = yield* Inbound
      // A mail contains its files. Nobody else has them.
      const media = [{ kind: "document" as const, data: pdf.toString("base64"), fileName: "order.pdf" }]
      const [first, second] = yield* accept(
        yield* message({ kind: "media", text: "My order", media }),
        yield* message({ kind: "media", text: "Again", media })
      )
      if (first === undefined || second === undefined) return expect.unreachable()
      for (const table of ["artifact_claims", "conversation_artifacts"]) {
        const failed = yield* Effect.flip(failsOnce(table, "true", "57P01", inbound.process(job(first))))
        expect(failed).toMatchObject({ fatal: false })
        expect(yield* transcript).toEqual(["1 user: My order"])
        expect(yield* attachments).toEqual([[]])
      }
      yield* inbound.process(job(first))
      expect(yield* attachments).toMatchObject([[{ name: "order.pdf", size: pdf.length }]])
      yield* failsOnce(
        "artifact_claims",
        "true",
        "57P01",
        inbound.process(job(second, { lastAttempt: true }))
      )
      expect((yield* transcript).slice(-2)).toEqual([
        expect.stringMatching(/user: Again$/),
        expect.stringMatching(/agent: Hello$/)
      ])
    }).pipe(onFreshData)
  )
})
