import * as Fs from "node:fs"
import { connect } from "node:net"
import * as Os from "node:os"
import * as Path from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { DefaultChatTransport, readUIMessageStream, type UIMessage } from "ai"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import { afterAll, expect } from "vitest"
import { layerDisk } from "../../../src/capabilities/ArtifactStore/Disk.ts"
import { Artifacts } from "../../../src/usecases/knowledge/Artifacts.ts"
import { eachEngineLive } from "../../TestDatabase.ts"
import { Script } from "../../usecases/chat/TurnHarness.ts"
import { keyHeader } from "../PublicServer.ts"
import { expectData, expectError, TestServer } from "../TestServer.ts"
import { appUrl, seedDatabase, layer as WidgetServer } from "./WidgetServer.ts"

const folder = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-attachments-"))
afterAll(() => Fs.rmSync(folder, { recursive: true, force: true }))
const disk = Layer.orDie(layerDisk(folder))

/** Files of the store, finished or not. */
const kept = () =>
  Fs.readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length

/** An empty database beside an empty store. */
const start = Effect.zipRight(
  Effect.sync(() => {
    for (const name of Fs.readdirSync(folder)) {
      if (name !== "unfinished") Fs.rmSync(Path.join(folder, name), { recursive: true })
    }
  }),
  seedDatabase
)

const MiB = 1_048_576
const path = "/api/v1/chat/stream"

const padded = (signature: ReadonlyArray<number> | string, size: number) => {
  const bytes = new Uint8Array(size)
  bytes.set(Buffer.from(signature))
  return bytes
}
const png = (size = 200) => padded([0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10], size)
const pdf = (size = 200) => padded("%PDF-1.7\n", size)

interface Upload {
  readonly bytes: Uint8Array
  readonly type: string
  readonly name?: string
}

const form = (files: ReadonlyArray<Upload>, fields: Readonly<Record<string, string>> = { message: "Hi" }) => {
  const body = new FormData()
  for (const [name, value] of Object.entries(fields)) body.append(name, value)
  for (const { bytes, name = "file", type } of files) {
    body.append("files", new Blob([Uint8Array.from(bytes)], { type }), name)
  }
  return body
}

const send = (files: ReadonlyArray<Upload>, fields?: Readonly<Record<string, string>>) =>
  Effect.flatMap(TestServer, ({ call }) =>
    call("POST", path, { headers: keyHeader("spk_chat"), body: form(files, fields) })
  )

/** What the model was last shown of the user's message. */
const shown = Effect.gen(function* () {
  const asked = (yield* Ref.get((yield* Script).requests)).at(-1)
  const last = asked?.prompt.content.at(-1)
  return last?.role === "user" ? last.content : []
})

const session = Effect.gen(function* () {
  const { call } = yield* TestServer
  const answer = yield* call("POST", "/api/sdk/init", { headers: keyHeader("spk_chat"), body: {} })
  const sessionId: string = expectData(answer).sessionId
  return sessionId
})

eachEngineLive("The hosted stream", (it, engine) => {
  it.layer(WidgetServer(disk))((it) => {
    it.effect("accepts a form: message and identities as text, the other fields as JSON text", () =>
      Effect.gen(function* () {
        yield* start
        const answer = yield* send([], {
          message: '"Quoted" and: ünïcode 👋',
          externalEndUserId: "ada",
          persist: "true",
          context: '{"plan":"pro"}'
        })
        expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/event-stream"])
        expect(answer.headers.get("x-end-user-id")).toMatch(/^usr_/)
        expect(answer.headers.get("x-run-id")).toMatch(/^run_/)
        // After what the program said about the customer.
        expect(yield* shown).toMatchObject([
          { type: "text", text: expect.stringMatching(/\n"Quoted" and: ünïcode 👋$/u) }
        ])
        const asked = (yield* Ref.get((yield* Script).requests)).at(-1)
        expect(JSON.stringify(asked?.prompt)).toContain("pro")
        const responseSchema = '{"type":"object","properties":{"years":{"type":"integer"}}}'
        yield* send([], { message: "Hi", responseSchema })
        expect((yield* Ref.get((yield* Script).requests)).at(-1)?.responseSchema).toMatchObject({
          properties: { years: { type: "integer" } }
        })
        for (const fields of [
          {},
          { message: " " },
          { message: "Hi", context: "{broken" },
          { message: "Hi", persist: "perhaps" },
          { message: "Hi", filter: '{"sourceIds":1}' },
          { message: "Hi", sessionId: "ses_1", externalEndUserId: "ada" },
          { message: "x".repeat(32_001) }
        ]) {
          expectError(yield* send([], fields), 400, "VALIDATION_ERROR")
        }
      })
    )

    it.effect("lets only the team try an unpublished version, as JSON or as a form", () =>
      Effect.gen(function* () {
        const sql = yield* start
        const { call } = yield* TestServer
        yield* sql`
          insert into agent_versions (tenant_id, agent_id, version, settings) values ('ten_1', 'agt_1', 2, ${JSON.stringify(
            {
              name: "Helper",
              instructions: "Speak like version two.",
              model: null,
              greeting: null,
              topK: 6,
              minScore: null,
              tools: [],
              mode: "strict",
              unsupported: "annotate",
              contextTokens: 6_000,
              maxSearches: 0,
              length: "default",
              tone: "default",
              masking: null,
              streamReasoning: false
            }
          )}::jsonb)`
        const headers = { cookie: "spoke_session=owner", origin: appUrl }
        const asked = Effect.flatMap(Script, ({ requests }) =>
          Effect.map(Ref.get(requests), (all) => JSON.stringify(all.at(-1)?.prompt))
        )
        const turn = { agentId: "agt_1", message: "Hi" }
        const trial = yield* call("POST", path, { headers, body: { ...turn, version: 2 } })
        expect(trial.status).toBe(200)
        expect(yield* asked).toContain("version two")
        const formed = form([], { ...turn, version: "2" })
        expect((yield* call("POST", path, { headers, body: formed })).status).toBe(200)
        expect(yield* asked).toContain("version two")
        expect(yield* sql`select agent_version as version from agent_runs`).toEqual([
          { version: 2 },
          { version: 2 }
        ])
        expect((yield* call("POST", path, { headers, body: turn })).status).toBe(200)
        expect(yield* asked).not.toContain("version two")
        expectError(yield* call("POST", path, { headers, body: { ...turn, version: 3 } }), 404, "NOT_FOUND")
        const page = { headers: keyHeader("spk_chat"), body: { message: "Hi", version: 2 } }
        expectError(yield* call("POST", path, page), 400, "VALIDATION_ERROR")
        expect(yield* sql`select count(*)::int as runs from agent_runs`).toEqual([{ runs: 3 }])
      })
    )

    it.effect("tries unsaved settings only for members who may change the agent, and marks the trace", () =>
      Effect.gen(function* () {
        const sql = yield* start
        const { call } = yield* TestServer
        const asked = Effect.flatMap(Script, ({ requests }) =>
          Effect.map(Ref.get(requests), (all) => JSON.stringify(all.at(-1)?.prompt))
        )
        const headers = { cookie: "spoke_session=owner", origin: appUrl }
        const draft = {
          instructions: "Speak like the draft.",
          retrieval: { topK: 2 },
          grounding: { mode: "general" }
        }
        const body = { agentId: "agt_1", message: "Hi", draft }
        expect((yield* call("POST", path, { headers, body })).status).toBe(200)
        expect(yield* asked).toContain("Speak like the draft.")
        const formed = form([], { agentId: "agt_1", message: "Hi", draft: JSON.stringify(draft) })
        expect((yield* call("POST", path, { headers, body: formed })).status).toBe(200)
        expect(
          yield* sql`select payload, agent_version as version from agent_run_events e
            join agent_runs r on r.id = e.run_id where e.sequence = 1`
        ).toEqual([
          { payload: { draft }, version: 1 },
          { payload: { draft }, version: 1 }
        ])
        expect(yield* sql`select count(*)::int as versions from agent_versions`).toEqual([{ versions: 0 }])
        expect(
          (yield* call("POST", path, { headers, body: { agentId: "agt_1", message: "Hi" } })).status
        ).toBe(200)
        expect(yield* asked).not.toContain("Speak like the draft.")

        const agent = { ...headers, cookie: "spoke_session=agent" }
        expectError(yield* call("POST", path, { headers: agent, body }), 403, "FORBIDDEN")
        const page = { headers: keyHeader("spk_chat"), body: { message: "Hi", draft } }
        expectError(yield* call("POST", path, page), 400, "VALIDATION_ERROR")
        for (const wrong of [{ retrieval: { topK: 0 } }, { tools: ["nobody_has_it"] }, { instructions: 1 }]) {
          expectError(
            yield* call("POST", path, { headers, body: { ...body, draft: wrong } }),
            400,
            "VALIDATION_ERROR"
          )
        }
        expect(yield* sql`select count(*)::int as runs from agent_runs`).toEqual([{ runs: 3 }])
      })
    )

    it.effect("replaces a turn of the team, and no other's", () =>
      Effect.gen(function* () {
        const sql = yield* start
        const { call } = yield* TestServer
        const headers = { cookie: "spoke_session=agent", origin: appUrl }
        const say = (body: object) => call("POST", path, { headers, body: { agentId: "agt_1", ...body } })
        const runOf = (answer: { readonly headers: Headers }) => answer.headers.get("x-run-id") ?? ""
        const first = yield* say({ message: "One" })
        const [, conversationId = ""] = /"conversationId":"([^"]+)"/.exec(first.text) ?? []
        const second = yield* say({ message: "Two", conversationId })
        yield* say({ message: "Three", conversationId })
        const edited = yield* say({ message: "Two, edited", replaces: runOf(second) })
        expect(edited.status).toBe(200)
        expect(edited.text).toContain(conversationId)
        const stored = sql`select content, position::int from messages where role = 'user' order by position`
        expect(yield* stored).toEqual([
          { content: "One", position: 1 },
          { content: "Two, edited", position: 3 }
        ])
        const asked = (yield* Ref.get((yield* Script).requests)).at(-1)
        expect(JSON.stringify(asked?.prompt)).not.toContain("Three")
        expect(yield* sql`select message_count::int as count from conversations`).toEqual([{ count: 4 }])

        // What was taken back is no turn of the conversation any more: nothing is taken back twice.
        expect((yield* say({ message: "Four", replaces: runOf(second) })).status).toBe(200)
        expect(yield* stored).toHaveLength(3)
        expectError(yield* say({ message: "x", replaces: "run_nobody" }), 404, "NOT_FOUND")
        expectError(
          yield* say({ message: "x", replaces: runOf(first), conversationId }),
          400,
          "VALIDATION_ERROR"
        )
        const visitor = yield* call("POST", path, {
          headers: keyHeader("spk_chat"),
          body: { message: "Hello" }
        })
        expectError(yield* say({ message: "x", replaces: runOf(visitor) }), 404, "NOT_FOUND")
        expectError(
          yield* call("POST", path, {
            headers: keyHeader("spk_chat"),
            body: { message: "x", replaces: runOf(visitor) }
          }),
          400,
          "VALIDATION_ERROR"
        )
        // A refused turn takes nothing back.
        const before = yield* stored
        yield* sql`update subscriptions set turns_limit = 0, overage_enabled = false`
        expectError(yield* say({ message: "x", replaces: runOf(first) }), 429, "TURN_LIMIT_EXCEEDED")
        expect(yield* stored).toEqual(before)
        yield* sql`update conversations set tickets = tickets + 1 where id = ${conversationId}`
        expectError(yield* say({ message: "x", replaces: runOf(first) }), 409, "CONVERSATION_NOT_ACTIVE")
      })
    )

    it.effect("stops only turns of the agent for the team", () =>
      Effect.gen(function* () {
        yield* start
        const { call } = yield* TestServer
        const headers = { cookie: "spoke_session=agent", origin: appUrl }
        const said = yield* call("POST", path, { headers, body: { agentId: "agt_1", message: "Hi" } })
        const runId = said.headers.get("x-run-id") ?? ""
        const stop = (id: string, agentId: string) =>
          call("POST", `${path}/${id}/stop?agentId=${agentId}`, { headers })
        expect(expectData(yield* stop(runId, "agt_1"))).toEqual({ id: runId, status: "complete" })
        expectError(yield* stop("run_nobody", "agt_1"), 404, "NOT_FOUND")
        expectError(yield* call("POST", `${path}/${runId}/stop`, { headers }), 400, "VALIDATION_ERROR")
      })
    )

    it.effect(
      "attachments reach the model, are stored with the message, and are returned byte for byte",
      () =>
        Effect.gen(function* () {
          const sql = yield* start
          const sessionId = yield* session
          const picture = { bytes: png(300), type: "image/png", name: 'käse "1".png' }
          const paper = { bytes: pdf(70_000), type: "application/pdf", name: "paper.pdf" }
          const answer = yield* send([picture, paper], { message: "What is this?", sessionId })
          expect(answer.status).toBe(200)
          const parts = yield* shown
          expect(parts.map((part) => part.type)).toEqual(["text", "file", "file"])
          expect(parts.slice(1)).toMatchObject([
            { mediaType: "image/png", fileName: 'käse "1".png' },
            { mediaType: "application/pdf", fileName: "paper.pdf" }
          ])
          const { call } = yield* TestServer
          const query = `sessionId=${sessionId}`
          const read = (address: string, key = "spk_chat") =>
            call("GET", address, { headers: keyHeader(key) })
          const { messages } = expectData(yield* read(`/api/sdk/messages?${query}`))
          expect(messages[0].media).toMatchObject([
            { type: "image", name: 'käse "1".png', mimeType: "image/png" },
            { type: "file", name: "paper.pdf", mimeType: "application/pdf" }
          ])
          expect(messages[1].media).toEqual([])
          const { url } = yield* TestServer
          for (const [place, sent] of [picture, paper].entries()) {
            const address = `${messages[0].media[place].url}?${query}`
            const file = yield* Effect.promise(() => fetch(url + address, { headers: keyHeader("spk_chat") }))
            const bytes = yield* Effect.promise(() => file.arrayBuffer())
            expect(Buffer.compare(Buffer.from(bytes), Buffer.from(sent.bytes))).toBe(0)
            expect(file.headers.get("content-type")).toBe(sent.type)
            expect(file.headers.get("content-security-policy")).toBe("default-src 'none'; sandbox")
            expect(file.headers.get("x-content-type-options")).toBe("nosniff")
            expectError(yield* read(address, "spk_other"), 404, "NOT_FOUND")
            expectError(
              yield* read(`${messages[0].media[place].url}?sessionId=${yield* session}`),
              404,
              "NOT_FOUND"
            )
          }
          // They stay as long as the conversation does, whatever sweeps.
          yield* (yield* Artifacts).sweep
          expect(kept()).toBe(2)
          yield* sql`delete from conversations`
          yield* sql`delete from artifact_claims`
          yield* (yield* Artifacts).sweep
          expect(kept()).toBe(0)
        })
    )

    it.effect("attachments of a message to a human are stored and not shown to the model", () =>
      Effect.gen(function* () {
        const sql = yield* start
        const sessionId = yield* session
        yield* send([], { message: "Hi", sessionId })
        yield* sql`update conversations set state = 'HUMAN_ACTIVE', epoch = epoch + 1`
        const answer = yield* send([{ bytes: png(), type: "image/png" }], { message: "Look", sessionId })
        expect(answer.status).toBe(200)
        expect(answer.text).toContain('"state":"HUMAN_ACTIVE"')
        const [row] =
          yield* sql`select jsonb_array_length(attachments) as files from messages where content = 'Look'`
        expect(row).toEqual({ files: 1 })
        expect(yield* shown).toMatchObject([{ text: "Hi" }])
      })
    )

    it.effect("a type that is not allowed, or differs from the declared one, is UNSUPPORTED_TYPE", () =>
      Effect.gen(function* () {
        yield* start
        const wrong: ReadonlyArray<Upload> = [
          { bytes: Buffer.from("hello, world, this is text"), type: "text/plain" },
          { bytes: Buffer.from("hello, world, this is text"), type: "image/png" },
          { bytes: png(), type: "application/pdf" },
          { bytes: pdf(), type: "image/png" },
          { bytes: png(), type: "application/octet-stream" },
          { bytes: new Uint8Array(0), type: "image/png" },
          { bytes: Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>"), type: "image/svg+xml" }
        ]
        const before = kept()
        for (const file of wrong) expectError(yield* send([file]), 400, "UNSUPPORTED_TYPE")
        expectError(yield* send([{ bytes: png(), type: "image/png" }, ...wrong]), 400, "UNSUPPORTED_TYPE")
        expect(kept()).toBe(before)
      })
    )

    it.effect("an attachment that the agent's model cannot read is UNSUPPORTED_ATTACHMENT_TYPE", () =>
      Effect.gen(function* () {
        yield* start
        const before = kept()
        // A name may be cut inside a character.
        const long = { bytes: png(), type: "image/png", name: `👋${"x".repeat(250)}.png` }
        expect((yield* send([long], { message: "Hi", persist: "false" })).status).toBe(200)
        // The turn gives its files up when it has ended, which is after the last byte of its stream.
        const { sweep } = yield* Artifacts
        for (let round = 0; round < 100 && kept() !== before; round++) {
          yield* sweep
          yield* Effect.promise(() => delay(20))
        }
        // The scripted model reads PNG and PDF.
        const gif = { bytes: padded("GIF89a", 100), type: "image/gif" }
        expectError(yield* send([gif]), 400, "UNSUPPORTED_ATTACHMENT_TYPE")
        expectError(
          yield* send([{ bytes: png(), type: "image/png" }, gif]),
          400,
          "UNSUPPORTED_ATTACHMENT_TYPE"
        )
        expect(kept()).toBe(before)
      })
    )

    it.effect("an image may take 10 MB and a PDF 25 MB, one byte more is FILE_TOO_LARGE", () =>
      Effect.gen(function* () {
        yield* start
        const before = kept()
        expectError(yield* send([{ bytes: png(10 * MiB + 1), type: "image/png" }]), 400, "FILE_TOO_LARGE")
        expectError(
          yield* send([{ bytes: pdf(25 * MiB + 1), type: "application/pdf" }]),
          400,
          "FILE_TOO_LARGE"
        )
        expect(kept()).toBe(before)
        const largest = [
          { bytes: png(10 * MiB), type: "image/png" },
          { bytes: pdf(25 * MiB), type: "application/pdf" }
        ]
        expect((yield* send(largest, { message: "Hi", persist: "false" })).status).toBe(200)
      })
    )

    it.effect(
      "ten files are accepted, more are VALIDATION_ERROR, and nothing of a refused request is stored",
      () =>
        Effect.gen(function* () {
          yield* start
          const files = Array.from({ length: 11 }, (_, place) => ({
            bytes: png(100 + place),
            type: "image/png"
          }))
          const before = kept()
          expectError(yield* send(files), 400, "VALIDATION_ERROR")
          expectError(yield* send(files.slice(1), { message: "" }), 400, "VALIDATION_ERROR")
          expectError(
            yield* send(files.slice(1), { message: "Hi", conversationId: "cnv_none" }),
            404,
            "CONVERSATION_NOT_FOUND"
          )
          expectError(yield* send(files.slice(1), { message: "Hi", sessionId: "ses_none" }), 404, "NOT_FOUND")
          // What was kept for a turn that was refused is removed by its job, or by the sweep.
          yield* (yield* Artifacts).sweep
          expect(kept()).toBe(before)
          expect((yield* send(files.slice(1))).status).toBe(200)
          expect((yield* shown).filter(({ type }) => type === "file")).toHaveLength(10)
        })
    )

    it.effect("a form that is incomplete or invalid is VALIDATION_ERROR", () =>
      Effect.gen(function* () {
        yield* start
        const before = kept()
        const { call } = yield* TestServer
        const head =
          '--b\r\ncontent-disposition: form-data; name="files"; filename="a.png"\r\ncontent-type: image/png\r\n\r\n'
        const bodies = [
          "",
          "--b",
          "--b--",
          "no form",
          head,
          `${head}${Buffer.from(png()).toString("latin1")}`,
          `${head}\r\n--`,
          "--b\r\n\r\n\r\n--b--",
          `--b\r\n${"x".repeat(20_000)}\r\n\r\n\r\n--b--`,
          `--b\r\ncontent-disposition: attachment; name="x"\r\n\r\n\r\n--b--`
        ]
        for (const body of bodies) {
          const headers = { ...keyHeader("spk_chat"), "content-type": "multipart/form-data; boundary=b" }
          expectError(
            yield* call("POST", path, { headers, body: Buffer.from(body, "latin1") }),
            400,
            "VALIDATION_ERROR"
          )
        }
        const unbounded = { ...keyHeader("spk_chat"), "content-type": "multipart/form-data" }
        expectError(yield* call("POST", path, { headers: unbounded, body: "--b--" }), 400, "VALIDATION_ERROR")
        expect(kept()).toBe(before)
      })
    )

    it.effect("a client that disconnects during an upload leaves no data behind", () =>
      Effect.gen(function* () {
        yield* start
        const before = kept()
        const { url } = yield* TestServer
        yield* Effect.promise(async () => {
          const socket = connect(Number(new URL(url).port), "127.0.0.1")
          const body =
            '--b\r\ncontent-disposition: form-data; name="files"; filename="a.pdf"\r\n' +
            "content-type: application/pdf\r\n\r\n%PDF-1.7"
          socket.write(
            `POST ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: spk_chat\r\ncontent-type: multipart/form-data; boundary=b\r\n` +
              `content-length: 1000000\r\n\r\n${body}${"x".repeat(200_000)}`
          )
          const until = async (done: () => boolean) => {
            for (let round = 0; round < 500 && !done(); round++)
              await new Promise((next) => setTimeout(next, 10))
            expect(done()).toBe(true)
          }
          await until(() => kept() > before)
          socket.destroy()
          await until(() => kept() === before)
        })
      })
    )

    it.effect("the AI SDK client sends files and reads the reply", () =>
      Effect.gen(function* () {
        yield* start
        const { url } = yield* TestServer
        const sessionId = yield* session
        const last = yield* Effect.promise(async () => {
          const transport = new DefaultChatTransport<UIMessage>({
            api: url + path,
            headers: keyHeader("spk_chat"),
            // As a page does it: the parts of the last message become a form.
            fetch: (address, options) => {
              const { messages } = JSON.parse(String(options?.body))
              const body = new FormData()
              body.append("sessionId", sessionId)
              for (const part of messages.at(-1).parts) {
                if (part.type === "text") body.append("message", part.text)
                if (part.type !== "file") continue
                const bytes = Buffer.from(String(part.url).split(",")[1] ?? "", "base64")
                body.append("files", new Blob([bytes], { type: part.mediaType }), part.filename)
              }
              return fetch(address, { ...options, headers: keyHeader("spk_chat"), body })
            }
          })
          const dataUrl = `data:image/png;base64,${Buffer.from(png()).toString("base64")}`
          const stream = await transport.sendMessages({
            trigger: "submit-message",
            chatId: "chat",
            messageId: undefined,
            abortSignal: undefined,
            messages: [
              {
                id: "1",
                role: "user",
                parts: [
                  { type: "text", text: "What is this?" },
                  { type: "file", mediaType: "image/png", filename: "a.png", url: dataUrl }
                ]
              }
            ]
          })
          let message: UIMessage | undefined
          for await (const next of readUIMessageStream({ stream, terminateOnError: true })) message = next
          return message
        })
        expect(last?.parts.flatMap((part) => (part.type === "text" ? [part.text] : []))).toEqual(["Hello"])
        expect((yield* shown).map(({ type }) => type)).toEqual(["text", "file"])
      })
    )

    if (engine === "embedded") {
      it.effect("ten concurrent PDFs of 25 MB are not held in memory", () =>
        Effect.gen(function* () {
          yield* start
          const { url } = yield* TestServer
          const piece = new Uint8Array(256 * 1_024)
          const before = kept()
          const peak = yield* Effect.promise(async () => {
            const chunks = async function* () {
              for (let file = 0; file < 10; file++) {
                yield Buffer.from(
                  `--b\r\ncontent-disposition: form-data; name="files"; filename="${file}.pdf"\r\n` +
                    `content-type: application/pdf\r\n\r\n%PDF-1.7`
                )
                for (let place = 0; place < 99; place++) yield piece
                yield Buffer.from("\r\n")
              }
              // Without a message it is refused once everything has come.
              yield Buffer.from("--b--\r\n")
            }
            globalThis.gc?.()
            const first = process.memoryUsage().rss
            let peakBytes = 0
            const watch = setInterval(
              () => (peakBytes = Math.max(peakBytes, process.memoryUsage().rss - first)),
              20
            )
            const response = await fetch(url + path, {
              method: "POST",
              headers: { ...keyHeader("spk_chat"), "content-type": "multipart/form-data; boundary=b" },
              body: ReadableStream.from(chunks()),
              duplex: "half"
            } as RequestInit)
            clearInterval(watch)
            expect(response.status).toBe(400)
            await response.text()
            return peakBytes
          })
          // Sender and receiver are both in this process.
          expect(peak / MiB).toBeLessThan(60)
          expect(kept()).toBe(before)
        })
      )
    }
  })
})
