/**
 * Webhooks of messaging providers accepted a second, beside a bare server that only checks the HMAC and keeps nothing. Every
 * one carries a new message, which Spoke has in its inbox and its queue, committed, before it answers. On PostgreSQL, which
 * syncs to disk, the process only accepts (`--role api`); the embedded database has one process, whose workers take the
 * jobs meanwhile.
 */
import { createHmac, randomUUID } from "node:crypto"
import { alternate, load } from "../load.mjs"
import { startScript } from "../machine.mjs"
import { embeddedSpoke, serverSpoke } from "../spoke.mjs"

const secret = "the app secret of the benchmark"
const run = randomUUID()

/** A delivery as in the provider's documentation, from one of 5,000 customers. */
export const delivery = (number) => {
  const from = String(491_700_000_000 + (number % 5_000))
  const message = {
    from,
    from_user_id: `DE.${from}`,
    id: `wamid.${run}.${number}`,
    timestamp: String(Math.floor(Date.now() / 1_000)),
    type: "text",
    text: { body: "Does it come in another color, and when would it be here?" }
  }
  const value = {
    messaging_product: "whatsapp",
    metadata: { display_phone_number: "15550783881", phone_number_id: "106540352242922" },
    contacts: [{ profile: { name: "Sheena Nelson" }, wa_id: from, user_id: `DE.${from}` }],
    messages: [message]
  }
  return JSON.stringify({
    object: "whatsapp_business_account",
    entry: [{ id: "102290129340398", changes: [{ value, field: "messages" }] }]
  })
}

const signatureOf = (payload) => ({
  "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(payload).digest("hex")}`
})

const perSecond = (result) => result.perSecond

export const webhooks = async ({ databases, model, progress, quick, rounds, seconds }) => {
  const { postgres, redis } = await databases()
  const stub = await model()
  const bare = await startScript("peers/bare.mjs", [], { WEBHOOK_SECRET: secret })
  const variables = { CHANNEL_APP_SECRET: secret }
  const out = []
  const measure = async (engine, start) => {
    const spoke = await start()
    const target = (service, route) => ({
      url: `${service.url}${route}`,
      pid: service.pid,
      body: delivery,
      signed: signatureOf
    })
    const targets = { bare: target(bare, "/webhook"), spoke: target(spoke, "/api/webhooks/whatsapp") }
    for (const each of Object.values(targets)) await load(each, { clients: 16, each: quick ? 5 : 100 })
    for (const clients of quick ? [16] : [1, 16, 64]) {
      // Accepted work continues long after, so the next measurement waits for it.
      const options = {
        clients,
        seconds,
        alone: true,
        ...(engine === "server" && { database: postgres.pid })
      }
      const result = await alternate(targets, rounds, options, (text) => progress(`${engine}: ${text}`))
      out.push({ engine, clients, ...result.results, ratio: result.ratio("spoke", "bare", perSecond) })
    }
    await spoke.stop("SIGKILL")
  }
  if (postgres) {
    // Each installation has its own Redis database.
    const own = redis === undefined ? {} : { REDIS_URL: `${redis.url}/1` }
    await measure("server", () =>
      serverSpoke(stub, { postgres, redis }, [0], {
        variables: { ...variables, ...own },
        args: ["--role", "api"]
      })
    )
  }
  await measure("embedded", () => embeddedSpoke(stub, [0], { variables }))
  await bare.stop()
  return { accepted: out }
}
