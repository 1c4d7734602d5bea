/** Number of SQL statements for each kind of outside input. */
import * as Statement from "@effect/sql/Statement"
import { expect } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { layerTable } from "../../src/capabilities/JobQueue/Table.ts"
import { normalize } from "../../src/channels/whatsapp/Inbound.ts"
import type { AgentScope } from "../../src/domain/accounts/Access.ts"
import { ConversationImports } from "../../src/store/conversations/ConversationImports.ts"
import { EmailDeliveryStore } from "../../src/store/accounts/EmailDeliveries.ts"
import { InboundEvents } from "../../src/store/channels/InboundEvents.ts"
import { EmailDeliveries } from "../../src/usecases/accounts/EmailDeliveries.ts"
import { ImportConversations } from "../../src/usecases/conversations/ImportConversations.ts"
import * as Fixtures from "../Fixtures.ts"
import { whatsapp } from "../http/channels/WebhookServer.ts"
import { layerReaders, page, serveSite } from "../readers/Site.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"
import { addSource, layerIngest, sync } from "../usecases/knowledge/IngestHarness.ts"

const services = Layer.mergeAll(
  InboundEvents.Default.pipe(Layer.provide(layerTable)),
  EmailDeliveries.Default.pipe(Layer.provide(EmailDeliveryStore.Default)),
  ImportConversations.Default.pipe(Layer.provide(ConversationImports.Default)),
  layerIngest,
  layerReaders
)

const numbered = <A>(count: number, make: (place: number) => A): ReadonlyArray<A> =>
  Array.from({ length: count }, (_, place) => make(place))

const delivery = (count: number) =>
  Effect.flatMap(InboundEvents, (inbox) => {
    const body = whatsapp(numbered(count, (place) => `${count}-${place}`))
    return inbox.accept(normalize(body, DateTime.unsafeMake(0)).arrivals)
  })

const mails = (count: number) =>
  Effect.flatMap(EmailDeliveries, (deliveries) =>
    deliveries.receive(numbered(count, (place) => ({ event: "delivered", sg_message_id: `${place}.x` })))
  )

const conversations = (count: number, { agentId }: AgentScope) =>
  Effect.flatMap(ImportConversations, (imports) => {
    const messages = [{ role: "user", content: "Hi", createdAt: "2024-05-01T09:30:00Z" }]
    const lines = numbered(count, (place) => JSON.stringify({ id: `${count}-${place}`, messages }))
    return imports.run(lines.join("\n"), agentId)
  })

const site = (count: number, scope: AgentScope) =>
  Effect.gen(function* () {
    const { origin } = yield* serveSite((here) => ({
      "/sitemap.xml": { body: numbered(count, (place) => `${here}/${place}`).join("\n") },
      ...Object.fromEntries(numbered(count, (place) => [`/${place}`, page(`Page ${place}`)]))
    }))
    const id = yield* addSource(scope, "SITEMAP", { sitemapUrl: `${origin}/sitemap.xml` })
    yield* sync(scope, id)
  })

type Send = (
  count: number,
  scope: AgentScope
) => Effect.Effect<unknown, unknown, Scope.Scope | Layer.Layer.Success<typeof services>>

const inputs: Readonly<Record<string, Send>> = {
  "a delivery of messages": delivery,
  "events of mails": mails,
  conversations,
  "pages of a site": site
}

eachEngineLive("Twice the input takes at most twice the statements:", (it) => {
  for (const [name, send] of Object.entries(inputs)) {
    it.scoped(name, () =>
      Effect.gen(function* () {
        yield* reset
        const scope = yield* Fixtures.agent()
        const counts: Array<number> = []
        for (const size of [15, 30, 60]) {
          let count = 0
          const counting = Statement.withTransformer((statement) => Effect.sync(() => (count++, statement)))
          yield* counting(Effect.provide(send(size, scope), services))
          counts.push(count)
        }
        const [small = 0, middle = 0, large = 0] = counts
        expect(small).toBeGreaterThan(0)
        expect([middle, large]).toEqual([
          expect.toSatisfy((count: number) => count <= 2 * small),
          expect.toSatisfy((count: number) => count <= 2 * middle)
        ])
      })
    )
  }
})
