/** A mailbox on a running service: threads over a real mail server, the team's replies, reports, limits, and no secret said. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import { createHmac } from "node:crypto"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { startSmtp } from "../../servers/SmtpStub.ts"
import { storeOf } from "../Engines.ts"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"
import { makeTeam, type Team } from "../Team.ts"

const secrets = { password: "password-canary-7a1c", signing: "signing-canary-3f9e" }
const address = "support@example.com"

describe("A mailbox", () => {
  const dataDir = temporaryFolder()
  let smtp: Awaited<ReturnType<typeof startSmtp>>
  let spoke: Spoke
  let team: Team
  let webhook: string

  beforeAll(async () => {
    smtp = await startSmtp()
    smtp.users.set(address, secrets.password)
    spoke = await start(dataDir, { SPOKE_FETCH_ALLOW: `127.0.0.1:${smtp.port}` })
    team = await makeTeam(spoke)
    const made = await team.owner("POST", `/api/agents/${team.agentId}/channels`, {
      channel: "email",
      accessToken: secrets.password,
      secrets: { signingSecret: secrets.signing },
      settings: { address, server: smtp.url }
    })
    expect(made.status).toBe(201)
    webhook = new URL(made.body.data.channel.webhookUrl).pathname
  }, 60_000)

  afterAll(async () => {
    await spoke.kill()
    smtp.close()
    removeFolder(dataDir)
  })

  const deliver = async (headers: Readonly<Record<string, string>>, text: string) => {
    const mail = `${Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}`)
      .join("\r\n")}\r\n\r\n${text}`
    const body = JSON.stringify({ raw: Buffer.from(mail).toString("base64") })
    const stamp = String(Math.floor(Date.now() / 1_000))
    const tag = createHmac("sha256", secrets.signing).update(`${stamp}.${body}`).digest("hex")
    const response = await fetch(`${spoke.url}${webhook}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-spoke-timestamp": stamp,
        "x-spoke-signature": `v1=${tag}`
      },
      body
    })
    expect(response.status).toBe(200)
    return JSON.parse(await response.text()).data
  }

  const of = (to: string) => smtp.taken.filter((mail) => mail.to === to)
  const taken = (to: string, count: number) =>
    until(
      () => Promise.resolve(of(to).length),
      (found) => found >= count
    )
  const conversations = async () => {
    const { body } = await team.owner("GET", "/api/conversations?channel=email&limit=100")
    return body.data.conversations
  }
  const messages = async (id: string) =>
    (await team.owner("GET", `/api/conversations/${id}/messages`)).body.data.messages

  it("answers a thread in the thread, first by the agent and then by the team", async () => {
    const ada = "ada@customers.example"
    const first = { From: `Ada <${ada}>`, "Message-ID": "<a1@customers.example>", Subject: "My order" }
    await deliver(first, "Where is it?")
    await taken(ada, 1)
    const [reply] = of(ada)
    expect(reply?.email).toMatchObject({
      from: { address },
      subject: "Re: My order",
      inReplyTo: "<a1@customers.example>"
    })
    expect(reply?.email.headers).toContainEqual(
      expect.objectContaining({ key: "auto-submitted", value: "auto-replied" })
    )
    const ours = reply?.email.messageId ?? ""
    await deliver(
      { ...first, "Message-ID": "<a2@customers.example>", "In-Reply-To": ours, Subject: "Re: My order" },
      `And when?\r\n\r\nOn Monday Support wrote:\r\n> ${reply?.email.text?.slice(0, 20)}\r\n`
    )
    await taken(ada, 2)
    const [conversation, ...others] = await conversations()
    expect(others).toEqual([])
    const said = await messages(conversation.id)
    expect(said.map(({ content, role }: { content: string; role: string }) => [role, content])).toEqual([
      ["user", "Subject: My order\n\nWhere is it?"],
      ["assistant", expect.any(String)],
      ["user", "And when?"],
      ["assistant", expect.any(String)]
    ])

    const human = await team.owner("POST", `/api/conversations/${conversation.id}/messages`, {
      content: "Tomorrow. *Grace*"
    })
    expect(human.status).toBeLessThan(300)
    await taken(ada, 3)
    const last = of(ada).at(-1)
    expect(last?.email).toMatchObject({ text: "Tomorrow. *Grace*\n", inReplyTo: "<a2@customers.example>" })
    expect(last?.email.headers.map(({ key }) => key)).not.toContain("auto-submitted")
    // Whoever answers now, it is not the agent.
    await deliver({ ...first, "Message-ID": "<a3@customers.example>", References: ours }, "Thanks")
    const stored = async () => (await messages(conversation.id)).length
    await until(stored, (count) => count === 6)
    expect(of(ada)).toHaveLength(3)

    // The report of a server says that the team's reply has come back.
    const report = [
      "--b\r\n\r\nIt came back.",
      "--b\r\ncontent-type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx\r\n\r\nAction: failed",
      `--b\r\ncontent-type: message/rfc822\r\n\r\nMessage-ID: ${last?.email.messageId}\r\n\r\nTomorrow.`,
      "--b--\r\n"
    ].join("\r\n")
    const headers = {
      From: "MAILER-DAEMON@customers.example",
      "Content-Type": "multipart/report; report-type=delivery-status; boundary=b"
    }
    expect(await deliver(headers, report)).toMatchObject({ enqueued: 0 })
    const failed = async () =>
      (await messages(conversation.id)).filter(
        ({ delivery }: { delivery?: { status: string } | null }) => delivery?.status === "failed"
      ).length
    await until(failed, (count) => count === 1)
  }, 60_000)

  it("answers neither programs nor itself", async () => {
    const before = smtp.taken.length
    const note = { From: "eve@customers.example", "Message-ID": "<e1@x>", Subject: "Away" }
    for (const mark of [
      { "Auto-Submitted": "auto-replied" },
      { Precedence: "bulk" },
      { "List-Id": "<l.x>" }
    ]) {
      expect(await deliver({ ...note, ...mark }, "I am away.")).toMatchObject({ enqueued: 0 })
    }
    expect(await deliver({ ...note, From: address }, "Hello")).toMatchObject({ enqueued: 0 })
    expect(smtp.taken).toHaveLength(before)
  })

  it("keeps the files of a mail once, as those of its message", async () => {
    const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
    const body = `--b\r\n\r\nSee the picture\r\n--b\r\ncontent-type: image/png\r\ncontent-transfer-encoding: base64\r\ncontent-disposition: attachment; filename=a.png\r\n\r\n${png}\r\n--b--\r\n`
    const headers = {
      From: "bob@customers.example",
      "Message-ID": "<b1@x>",
      "Content-Type": "multipart/mixed; boundary=b"
    }
    await deliver(headers, body)
    await taken("bob@customers.example", 1)
    const all = await Promise.all(
      (await conversations()).map(
        async ({ id }: { id: string }) =>
          (await team.owner("GET", `/api/conversations/${id}/recent`)).body.data.messages
      )
    )
    const sent = all.flat().filter(({ content }) => content.includes("See the picture"))
    expect(sent).toHaveLength(1)
    expect(sent[0].attachments).toMatchObject([{ name: "a.png", mimeType: "image/png" }])
  })

  it("answers a sender 30 times an hour, whatever the threads, and stores the rest", async () => {
    const eager = "eager@customers.example"
    for (let place = 0; place < 33; place++) {
      await deliver(
        { From: eager, "Message-ID": `<t${place}@x>`, Subject: `Thread ${place}` },
        `Question ${place}`
      )
    }
    const threads = async () =>
      (await conversations()).filter(({ lastMessage }: { lastMessage?: unknown }) => lastMessage !== null)
        .length
    await until(threads, (count) => count === 35)
    await taken(eager, 30)
    const unfinished = async () => {
      const headers = { authorization: `Bearer ${spoke.operatorToken}` }
      const { body } = await spoke.request("GET", "/api/operator/queues", { key: null, headers })
      return body.data.queues
        .filter(({ name }: { name: string }) => name.startsWith("channel-"))
        .reduce(
          (sum: number, queue: { waiting: number; active: number; delayed: number }) =>
            sum + queue.waiting + queue.active + queue.delayed,
          0
        )
    }
    await until(unfinished, (count) => count === 0)
    expect(of(eager)).toHaveLength(30)
  }, 90_000)

  it("says its secrets nowhere", async () => {
    const shown = await team.owner("GET", `/api/agents/${team.agentId}/channels`)
    await spoke.kill()
    const rows = await Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const kept = yield* sql`
        select (select jsonb_agg(to_jsonb(c)) from channels c) as channels,
          (select jsonb_agg(to_jsonb(i)) from channel_inbox i) as inbox,
          (select jsonb_agg(to_jsonb(o)) from channel_outbox o) as outbox,
          (select jsonb_agg(to_jsonb(q)) from queue_jobs q) as jobs`
      const limited = yield* sql<{ readonly count: number }>`
        select count(*)::int as count from messages where answered_by = 'loop'`
      const files = yield* sql<{ readonly count: number }>`
        select count(*)::int as count from channel_inbox where event::text like '%iVBORw0K%' or raw::text like '%iVBORw0K%'`
      return { kept, limited, files }
    }).pipe(Effect.provide(storeOf(dataDir)), Effect.scoped, Effect.runPromise)
    expect([rows.limited[0]?.count, rows.files[0]?.count]).toEqual([3, 0])
    const said = JSON.stringify([rows.kept, shown.body, spoke.output(), smtp.taken])
    for (const secret of Object.values(secrets)) expect(said).not.toContain(secret)
  })
})
