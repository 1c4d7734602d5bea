/** Mails at servers that customers choose: what is known of their fate, and where connections never go. */
import { expect, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { createServer, type Socket } from "node:net"
import { MailSubmission } from "../../../src/capabilities/Mailer.ts"
import { layerSubmission } from "../../../src/capabilities/Mailer/Submission.ts"
import { layerAddresses } from "../../../src/capabilities/OutboundHttp/Addresses.ts"
import { parseAllowList } from "../../../src/capabilities/OutboundHttp/AddressRules.ts"
import { type MailFate, startSmtp } from "../../servers/SmtpStub.ts"
import { restoreIt } from "../../setup.ts"

const submission = (allow = "127.0.0.1") =>
  Effect.map(
    Layer.build(
      layerSubmission.pipe(Layer.provide(layerAddresses({ allow: Either.getOrThrow(parseAllowList(allow)) })))
    ),
    Context.get(MailSubmission)
  )

const server = (fate?: (recipient: string, call: number) => MailFate) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const started = await startSmtp(fate)
      started.users.set("support", "password-canary")
      return started
    }),
    (started) => Effect.sync(() => started.close())
  )

const login = (port: number, password = "password-canary") => ({
  host: "127.0.0.1",
  port,
  secure: false,
  user: "support",
  password: Redacted.make(password)
})

const mail = {
  from: "support@example.com",
  to: "ada@customers.example",
  subject: "Re: Grüße",
  text: "Zwei Zeilen:\nÄ und 日本",
  messageId: "out_1.a@example.com",
  headers: { "In-Reply-To": "<first@customers.example>" },
  files: [{ name: "ä.png", mimeType: "image/png", bytes: new Uint8Array([137, 80, 78, 71]) }]
}

/** Says its lines, one for each that it is sent, and closes after the last. */
const script = (lines: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const open = new Set<Socket>()
      const made = createServer((socket) => {
        open.add(socket)
        const left = [...lines]
        const say = () => {
          const line = left.shift()
          if (line === undefined) return socket.destroy()
          socket.write(`${line}\r\n`)
        }
        socket.on("error", () => {})
        socket.on("data", say)
        say()
      })
      await new Promise<void>((resolve) => made.listen(0, "127.0.0.1", resolve))
      const address = made.address()
      return {
        made,
        open,
        port: typeof address === "object" && address !== null ? address.port : 0
      }
    }),
    ({ made, open }) =>
      Effect.sync(() => {
        made.close()
        for (const socket of open) socket.destroy()
      })
  )

layer(Layer.empty, { excludeTestServices: true })("A mail at a customer's server", (it) => {
  it.scoped("is taken as it was written", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* server()
      yield* (yield* submission()).submit(login(port), mail)
      expect(taken).toMatchObject([
        {
          user: "support",
          to: mail.to,
          email: {
            subject: mail.subject,
            text: `${mail.text}\n`,
            messageId: "<out_1.a@example.com>",
            inReplyTo: "<first@customers.example>",
            attachments: [{ filename: "ä.png", mimeType: "image/png" }]
          }
        }
      ])
    })
  )

  it.scoped("is surely not taken when the server says so", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* server((_, call) => (call === 1 ? "limited" : "refused"))
      const mails = yield* submission()
      const later = yield* Effect.flip(mails.submit(login(port), mail))
      const never = yield* Effect.flip(mails.submit(login(port), mail))
      expect([later, never]).toMatchObject([
        { reason: "Refused", retryable: true, message: "The mail server refused it (451)." },
        { reason: "Refused", retryable: false, message: "The mail server refused it (550)." }
      ])
      expect(taken).toEqual([])
    })
  )

  it.scoped("may have been taken when the connection broke before the last answer", () =>
    Effect.gen(function* () {
      const { port, taken } = yield* server(() => "lost")
      const error = yield* Effect.flip((yield* submission()).submit(login(port), mail))
      expect(error).toMatchObject({ reason: "Unknown", retryable: true })
      expect(taken).toHaveLength(1)
    })
  )

  it.scoped("is surely not taken when it broke any earlier", () =>
    Effect.gen(function* () {
      const dialogue = [
        "220 here",
        "250-here\r\n250 AUTH PLAIN",
        "235 in",
        "250 sender",
        "250 recipient",
        "354 go on"
      ]
      for (let length = 0; length < dialogue.length; length++) {
        const { port } = yield* script(dialogue.slice(0, length))
        const error = yield* Effect.flip((yield* submission()).submit(login(port), mail))
        expect([length, error.reason, error.retryable]).toEqual([length, "Refused", true])
      }
      const { port } = yield* script(dialogue)
      expect((yield* Effect.flip((yield* submission()).submit(login(port), mail))).reason).toBe("Unknown")
    })
  )

  it.scoped("is proven by a login, and nothing is sent for it", () =>
    Effect.gen(function* () {
      const { logins, port, taken } = yield* server()
      const mails = yield* submission()
      yield* mails.verify(login(port))
      const denied = yield* Effect.flip(mails.verify(login(port, "wrong-canary")))
      expect(denied).toMatchObject({ reason: "Refused", retryable: false })
      expect(JSON.stringify(denied)).not.toMatch(/canary|support/)
      expect([logins, taken]).toEqual([["support", "support"], []])
      const gone = yield* Effect.scoped(Effect.map(script([]), (closed) => closed.port))
      expect(yield* Effect.flip(mails.verify(login(gone)))).toMatchObject({
        reason: "Refused",
        retryable: true
      })
    })
  )

  it.scoped("never goes to an address that the service may not connect to, nor without TLS beyond it", () =>
    Effect.gen(function* () {
      const { logins, port } = yield* server()
      const guarded = yield* submission("")
      for (const host of ["127.0.0.1", "localhost", "169.254.169.254", "[::1]", "0x7f000001"]) {
        const error = yield* Effect.flip(guarded.verify({ ...login(port), host }))
        expect([host, error.retryable]).toEqual([host, false])
        expect(error.message).not.toContain("127.0.0.1")
      }
      expect(logins).toEqual([])
    })
  )

  restoreIt()
})
