/** A mail server for tests: loopback, free port, keeps what it is given. */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { SMTPServer } from "smtp-server"
import { text } from "node:stream/consumers"

export interface Received {
  readonly from: string
  readonly to: ReadonlyArray<string>
  readonly user: string | undefined
  /** Headers and body, as they came. */
  readonly raw: string
}

export const password = "hunter2 of the mail server"

/** Takes mail for anybody but `refused@…`, from user `spoke`; says `answer` when it has one. */
export const mailServer = (options: { readonly answer?: string; readonly silent?: boolean } = {}) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const received: Array<Received> = []
      const server = new SMTPServer({
        disabledCommands: ["STARTTLS"],
        allowInsecureAuth: true,
        logger: false,
        onAuth: ({ password: given, username }, _session, done) =>
          given === password
            ? done(null, { user: username })
            : done(new Error(`No ${username}:${given} here`)),
        onRcptTo: ({ address }, _session, done) =>
          done(address.startsWith("refused@") ? new Error(`No such mailbox: ${address}`) : null),
        onData: async (stream, session, done) => {
          // A client that goes away leaves a part of a mail.
          const raw = await text(stream).catch(() => null)
          if (raw === null) return
          const { mailFrom, rcptTo } = session.envelope
          const from = mailFrom === false ? "" : mailFrom.address
          received.push({ from, to: rcptTo.map(({ address }) => address), user: session.user, raw })
          if (options.silent !== true) done(null, options.answer)
        }
      })
      server.on("error", () => {})
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      const address = server.server.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const urlOf = (secret: string) =>
        Redacted.make(`smtp://spoke:${encodeURIComponent(secret)}@127.0.0.1:${port}`)
      return {
        received,
        urlOf,
        url: urlOf(password),
        stop: () => new Promise<void>((done) => server.close(done))
      }
    }),
    ({ stop }) => Effect.promise(stop)
  )
