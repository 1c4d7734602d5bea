/**
 * A custom channel: a pager that delivers what is typed into it, and shows the messages it gets. `node
 * examples/extension/channel.mjs` sends a question from a simulated pager.
 */
import * as Crypto from "node:crypto"
import * as Fs from "node:fs/promises"
import * as Http from "node:http"
import * as Os from "node:os"
import * as Path from "node:path"
import { channel, createSpoke } from "spoke"

const signatureOf = (secret, body) => Crypto.createHmac("sha256", secret).update(body).digest("hex")

export const pager = channel({
  title: "Pager",
  settings: { url: { label: "Address of the pager service" } },
  secrets: { signingSecret: { label: "Signing secret" } },
  verify: ({ body, header }, { secrets }) => {
    const given = Buffer.from(header("x-pager-signature") ?? "", "hex")
    const expected = Buffer.from(signatureOf(secrets.signingSecret, body), "hex")
    return given.length === expected.length && Crypto.timingSafeEqual(given, expected)
  },
  receive: ({ id, pager: from, text }) => ({ messages: [{ id, from, text }] }),
  prove: async ({ settings, token }, { fetch }) => {
    const answer = await fetch(`${settings.url}/account`, { headers: { authorization: `Bearer ${token}` } })
    if (answer.status !== 200) return { refused: "The pager service refuses the token." }
    return { account: JSON.parse(answer.text()).id }
  },
  send: async ({ settings, token }, { id, text, to }, { fetch }) => {
    const answer = await fetch(`${settings.url}/pages`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ to, text, reference: id })
    })
    if (answer.status === 503) return { refused: "The pager service is busy.", retryable: true }
    if (answer.status !== 200) return { refused: `The pager service refuses it (${answer.status}).` }
    return { id: JSON.parse(answer.text()).id }
  }
})

/** A simulated pager service that records what it shows. */
const serve = async () => {
  let shown
  const page = new Promise((resolve) => (shown = resolve))
  const server = Http.createServer(async (request, response) => {
    const chunks = await request.toArray()
    const allowed = request.headers.authorization === "Bearer secret"
    response.writeHead(allowed ? 200 : 401, { "content-type": "application/json" })
    response.end(JSON.stringify({ id: request.url === "/account" ? "line-1" : "page-1" }))
    if (allowed && request.url === "/pages") shown(JSON.parse(Buffer.concat(chunks)))
  })
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
  return { url: `http://127.0.0.1:${server.address().port}`, page, close: () => server.close() }
}

const dataDir = await Fs.mkdtemp(Path.join(Os.tmpdir(), "spoke-example-"))
const { close, page, url } = await serve()
const spoke = await createSpoke({ dataDir, channels: { pager }, fetchAllow: ["127.0.0.1"] })

const { id } = await spoke.agents.create({ name: "Shop" })
const agent = spoke.agent(id)
const { source } = await agent.sources.create({
  type: "TEXT",
  name: "Products",
  config: { text: "The teapot is made of stoneware and holds a litre." }
})
await agent.sources.ready(source.id)
const { webhookUrl } = await agent.channels.create({
  channel: "pager",
  accessToken: "secret",
  secrets: { signingSecret: "a-secret-of-both-sides" },
  settings: { url }
})

const body = JSON.stringify({ id: "1", pager: "555-0100", text: "What is the teapot made of?" })
const answer = await spoke.fetch(
  new Request(webhookUrl, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-pager-signature": signatureOf("a-secret-of-both-sides", body)
    },
    body
  })
)
if (answer.status !== 200) throw new Error(await answer.text())
const { text, to } = await page
console.log(`${to}: ${text}`)

await spoke.close()
close()
await Fs.rm(dataDir, { recursive: true })
