/** A mail server on loopback for channels: it knows users, takes mails as told, and remembers what it took. */
import PostalMime, { type Email } from "postal-mime"
import { SMTPServer } from "smtp-server"
import { buffer } from "node:stream/consumers"

/** What becomes of a mail; `lost` takes it and cuts the connection before its answer. */
export type MailFate = "taken" | "lost" | "limited" | "refused"

interface TakenMail {
  readonly user: string
  readonly to: string
  readonly email: Email
}

const refusal = (status: number, message: string) =>
  Object.assign(new Error(message), { responseCode: status })

/** `fateOf` is asked with the recipient, and the place of the mail among those for it, from 1. */
export const startSmtp = async (fateOf: (recipient: string, call: number) => MailFate = () => "taken") => {
  /** Passwords by user. */
  const users = new Map<string, string>()
  const taken: Array<TakenMail> = []
  const logins: Array<string> = []
  const begun = new Map<string, number>()
  const fates = new Map<string, MailFate>()
  const sockets = new Map<number, { readonly destroy: () => unknown }>()
  const server = new SMTPServer({
    disabledCommands: ["STARTTLS"],
    allowInsecureAuth: true,
    logger: false,
    onAuth: ({ password, username = "" }, _session, done) => {
      logins.push(username)
      return password !== undefined && users.get(username) === password
        ? done(null, { user: username })
        : done(new Error("No such user"))
    },
    onRcptTo: ({ address }, session, done) => {
      const call = (begun.get(address) ?? 0) + 1
      begun.set(address, call)
      const fate = fateOf(address, call)
      fates.set(session.id, fate)
      return done(fate === "refused" ? refusal(550, "No such mailbox") : null)
    },
    onData: async (stream, session, done) => {
      // A sender that is killed leaves a part of a mail.
      const mail = await buffer(stream).catch(() => null)
      if (mail === null) return
      const email = await PostalMime.parse(mail)
      const fate = fates.get(session.id)
      if (fate === "limited") return done(refusal(451, "Too many mails"))
      const [to] = session.envelope.rcptTo
      taken.push({ user: String(session.user), to: to?.address ?? "", email })
      if (fate !== "lost") return done(null, "queued")
      sockets.get(session.remotePort)?.destroy()
    }
  })
  server.server.on("connection", (socket) => {
    if (socket.remotePort !== undefined) sockets.set(socket.remotePort, socket)
  })
  server.on("error", () => {})
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const address = server.server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return {
    url: `smtp://127.0.0.1:${port}`,
    port,
    users,
    logins,
    taken,
    close: () => server.close(() => {})
  }
}
