import { expect, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { createServer } from "node:net"
import * as Redacted from "effect/Redacted"
import { Mailer } from "../../src/capabilities/Mailer.ts"
import { layerNone } from "../../src/capabilities/Mailer/None.ts"
import { layerSmtp } from "../../src/capabilities/Mailer/Smtp.ts"
import { mailServer, password } from "../servers/MailServer.ts"
import { restoreIt } from "../setup.ts"

const mailerAt = (url: Redacted.Redacted) =>
  Effect.map(Layer.build(layerSmtp({ url, from: "spoke@example.com" })), Context.get(Mailer))

const mail = {
  id: "01926f3c-5a7e-7d3b-8a60-5c1f0e9b2d47",
  to: "ops@example.com",
  subject: "Grüße",
  text: "Zwei Zeilen:\nÄ und 日本"
}

layer(Layer.empty, { excludeTestServices: true })("Mail", (it) => {
  it.scoped("is handed to the server as it was written, and named as the server names it", () =>
    Effect.gen(function* () {
      const { received, url } = yield* mailServer({ answer: "OK: queued as abc-DEF_1" })
      const mailer = yield* mailerAt(url)
      expect(mailer.configured).toBe(true)
      expect(yield* mailer.send(mail)).toEqual({ messageId: "abc-DEF_1" })
      expect(received).toMatchObject([{ from: "spoke@example.com", to: [mail.to], user: "spoke" }])
      const raw = received[0]?.raw ?? ""
      expect(raw).toContain("Subject: =?UTF-8?")
      expect(raw).toMatch(/^Message-ID: <[0-9a-f-]{36}@spoke>/m)
    })
  )

  it.scoped("has a name of ours where the server gives it none", () =>
    Effect.gen(function* () {
      const { received, url } = yield* mailServer({ answer: "Thanks" })
      const { messageId } = yield* (yield* mailerAt(url)).send(mail)
      expect(received[0]?.raw).toContain(`Message-ID: <${messageId}>`)
      expect(messageId).toBe(`${mail.id}@spoke`)
    })
  )

  it.scoped("cannot be given headers by its subject or recipient", () =>
    Effect.gen(function* () {
      const { received, url } = yield* mailServer()
      yield* (yield* mailerAt(url)).send({ ...mail, subject: "a\r\nBcc: evil@example.com\r\n\r\nb" })
      expect(received[0]?.to).toEqual([mail.to])
      expect(received[0]?.raw).not.toMatch(/^Bcc:/m)
    })
  )

  it.scoped("that is not taken fails without naming addresses and secrets", () =>
    Effect.gen(function* () {
      const { url, urlOf } = yield* mailServer()
      const refused = yield* Effect.flip((yield* mailerAt(url)).send({ ...mail, to: "refused@example.com" }))
      const denied = yield* Effect.flip((yield* mailerAt(urlOf("wrong secret"))).send(mail))
      expect([refused.message, denied.message]).toEqual([
        "The mail server did not accept the mail (EENVELOPE, 550).",
        "The mail server did not accept the mail (EAUTH, 535)."
      ])
      for (const secret of [password, "wrong secret", "refused@", "ops@"]) {
        expect(JSON.stringify([refused, denied])).not.toContain(secret)
      }
    })
  )

  it.scoped("to a server that is not there or never greets fails in time", () =>
    Effect.gen(function* () {
      const gone = yield* Effect.scoped(Effect.map(mailServer(), ({ url }) => url))
      const mute = yield* Effect.acquireRelease(
        Effect.promise(
          () =>
            new Promise<ReturnType<typeof createServer>>((resolve) => {
              const server = createServer((socket) => socket.on("error", () => {}))
              server.listen(0, "127.0.0.1", () => resolve(server))
            })
        ),
        (server) => Effect.sync(() => server.close())
      )
      const address = mute.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      for (const url of [gone, Redacted.make(`smtp://127.0.0.1:${port}`)]) {
        const [waited, error] = yield* Effect.timed(Effect.flip((yield* mailerAt(url)).send(mail)))
        expect(error._tag).toBe("MailerError")
        expect(Duration.toMillis(waited)).toBeLessThan(15_000)
      }
    })
  )

  it.scoped("is not sent where no server is configured", () =>
    Effect.gen(function* () {
      const mailer = Context.get(yield* Layer.build(layerNone), Mailer)
      expect(mailer.configured).toBe(false)
      expect((yield* Effect.flip(mailer.send(mail))).message).toBe("No mail server is configured.")
    })
  )

  restoreIt()
})
