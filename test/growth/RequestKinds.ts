/** Requests of clients, widgets and webhook senders. */
import * as DateTime from "effect/DateTime"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { resultOf } from "../ResultOf.ts"
import { event } from "../http/billing/BillingEvents.ts"
import { bytesOf, jsonOf, piecesOf, textOf } from "./Grown.ts"
import { type Kind, kind, orRefused, prose, tokens } from "./Kind.ts"
import { found, passage } from "./ModelKinds.ts"

const client = "REST client"
const sender = "webhook sender"

const folder = Path.join(import.meta.dirname, "../fixtures/channels")
const deliveries = (channel: string): ReadonlyArray<unknown> =>
  Fs.readdirSync(folder)
    .filter((name) => name.startsWith(channel))
    .map((name) => {
      const { body }: { readonly body: unknown } = JSON.parse(
        Fs.readFileSync(Path.join(folder, name), "utf8")
      )
      return body
    })

const metadata = { tenantId: "t", credits: "5", plan: "pro" }
const billed = [
  event("checkout.session.completed", 1, { id: "cs", payment_status: "paid", metadata }, "e1"),
  event(
    "customer.subscription.updated",
    1,
    {
      id: "sub",
      status: "active",
      metadata,
      items: { data: [{ current_period_start: 1, current_period_end: 2 }] }
    },
    "e2"
  ),
  event("invoice.paid", 1, { parent: { subscription_details: { subscription: "sub", metadata: {} } } }, "e3"),
  event("charge.refunded", 1, { amount: 5, amount_refunded: 5, payment_intent: "pi" }, "e4")
]
const mails = [
  { event: "delivered", sg_message_id: "abc.filter", "smtp-id": "<a@b>", sg_event_id: "e" },
  { event: "open", email: "a@b.example", category: ["x"] }
]
const boundary = "xYzboundary"
const form = [
  ...tokens(
    `--${boundary}\r\n¦\r\n--${boundary}\r\n¦\r\n--${boundary}--¦\r\n\r\n¦\r\n¦--¦xYzboundar¦text¦;¦"¦\\`
  ),
  ...tokens("Content-Disposition: form-data; name=\"a\"\r\n¦content-type: text/plain\r\n¦filename*=utf-8''a"),
  'content-disposition: form-data; name="files"; filename="x.txt"\r\n'
]
const sources = [
  {
    type: "URL",
    name: "A",
    config: { url: "https://a.example/", includePatterns: ["*"], metadata: { a: "b" } }
  },
  { type: "SITEMAP", name: "A", config: { sitemapUrl: "https://a.example/" } }
]
const turn = {
  message: "Hello",
  externalEndUserId: "me",
  context: { a: ["b"] },
  toolContext: { c: 1 },
  toolCredentials: { d: "e" }
}
const tool = {
  name: "t",
  description: "d",
  parameters: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
  http: {
    method: "POST",
    url: "https://a.example/{id}",
    headers: { "x-a": "b" },
    query: { q: "1" },
    body: { a: 1 }
  },
  bindings: [
    { from: "/a/b", to: "body:/c/d" },
    { from: "/id", to: "path:id" }
  ]
}
const imported = {
  id: "a",
  agentId: "agt",
  messages: [{ role: "user", content: "Hi", createdAt: "2024-05-01T09:30:00Z" }]
}

export const requestKinds: ReadonlyArray<Kind> = [
  ...(["Whatsapp", "Messenger"] as const).map((channel) => {
    const all = deliveries(channel.toLowerCase())
    return kind(
      [`${channel} delivery`, sender, 5],
      (random) => jsonOf(random, random.pick(all)),
      (m, body) => m[channel].normalize(body, m.DateTime.unsafeMake(0))
    )
  }),
  kind(
    ["text of a delivery", sender, 3],
    (random) => {
      const body = jsonOf(random, random.pick(deliveries("whatsapp")))
      return bytesOf((factor) => JSON.stringify(body(factor)))
    },
    ({ Text }, bytes) =>
      orRefused(() => {
        const text = new TextDecoder().decode(bytes)
        return Text.sanitizeJson(text).length + Text.sanitize(text).length
      })
  ),
  kind(
    ["billing event", sender, 4],
    (random) => jsonOf(random, random.pick(billed)),
    ({ StripeEvents }, body) => StripeEvents.eventOf(body)
  ),
  kind(
    ["events of mails", sender, 4],
    (random) => jsonOf(random, mails),
    ({ EmailLog, Schema }, body) => {
      const events = Schema.decodeUnknownOption(EmailLog.EmailEvents)(body)
      return events._tag === "Some" ? EmailLog.deliveriesOf(events.value) : null
    }
  ),
  kind(
    ["form with files", "widget visitor", 4],
    (random) => piecesOf(random, bytesOf(textOf(random, form))),
    ({ Effect, Either, Multipart, Stream }, pieces) => {
      const names: Array<string> = []
      const read = Multipart.forEachPart(Stream.fromIterable(pieces), boundary, ({ field }, content) =>
        Effect.map(Stream.runCollect(content), (chunks) => void names.push(`${field} ${chunks.length}`))
      )
      return Effect.runPromise(
        Effect.map(Effect.either(Effect.scoped(read)), (ended) => [names.length, Either.isRight(ended)])
      )
    }
  ),
  kind(
    ["type of a form", "widget visitor", 2],
    (random) => textOf(random, tokens('multipart/form-data; ¦boundary=¦"¦a¦;¦ ¦\t')),
    ({ Multipart }, text) => Multipart.boundaryOf(`multipart/form-data; ${text}`)._tag
  ),
  kind(
    ["turn", client, 4],
    (random) => jsonOf(random, turn),
    ({ ChatTurn, Schema }, body) => Schema.decodeUnknownOption(ChatTurn.CompleteTurnRequest)(body)._tag
  ),
  kind(
    ["source", client, 4],
    (random) => jsonOf(random, random.pick(sources)),
    ({ Schema, Source }, body) => Schema.decodeUnknownOption(Source.CreateSource)(body)._tag
  ),
  kind(
    ["tool", "member of a team", 3],
    (random) => jsonOf(random, tool),
    ({ Schema, Tool }, body) => Schema.decodeUnknownOption(Tool.CreateTool)(body)._tag
  ),
  kind(
    ["line of an import", "operator", 2],
    (random) => jsonOf(random, imported),
    ({ ConversationImport, Schema }, line) =>
      Schema.decodeUnknownOption(ConversationImport.ImportedConversation)(line)._tag
  ),
  kind(
    ["words of a query", client, 4],
    (random) => textOf(random, prose),
    ({ Query }, text) => Query.queryWords(text).forms.length
  ),
  kind(
    ["question to the extract", client, 3],
    (random) => textOf(random, prose),
    ({ Extractive }, text) =>
      Extractive.extract(text, [passage("A word of a sentence. And another one.", 0)]).length
  ),
  kind(
    ["prompt", client, 3],
    (random) => {
      const context = jsonOf(random, { user: "name", list: ["</context>"] })
      const message = textOf(random, prose)
      return (factor) => ({ context: context(factor), message: message(factor) })
    },
    ({ Prompt }, { context, message }) =>
      resultOf(
        Prompt.render({
          instructions: "Be brief.",
          style: { length: "default" as const, tone: "default" as const },
          grounding: "strict" as const,
          passages: [
            { index: 1, chunk: found(message), pieces: [], text: message, readAt: null, curated: false }
          ],
          context: context as never,
          history: Array.from({ length: 20 }, () => ({
            role: "user" as const,
            content: message.slice(0, 50)
          })),
          message,
          contextWindow: 128_000,
          now: DateTime.unsafeMake(0),
          runId: "run_1"
        })
      ).content.length
  )
]
