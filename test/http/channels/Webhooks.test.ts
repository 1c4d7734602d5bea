import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { JobQueue, JobQueueError } from "../../../src/capabilities/JobQueue.ts"
import { layerTable } from "../../../src/capabilities/JobQueue/Table.ts"
import type { DeliveryStatus } from "../../../src/domain/channels/Channel.ts"
import { InboundEvents, InboundEventRefused } from "../../../src/store/channels/InboundEvents.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import {
  type Answer,
  appSecret,
  challenge,
  deliver,
  type Options,
  request,
  signatureOf,
  verifyToken,
  webhookServer,
  whatsapp
} from "./WebhookServer.ts"

const outcome = ({ status, json }: Answer) => [status, json?.error?.code]

const expectFailure = (answer: Answer, status: number, code: string) => {
  expect(outcome(answer)).toEqual([status, code])
  expect(typeof answer.json.error.message).toBe("string")
  expect(answer.text).not.toContain(verifyToken)
  expect(answer.text).not.toContain(appSecret)
}

const result = (enqueued: number, dedupedCount = 0) => ({
  received: true,
  deduped: dedupedCount > 0,
  dedupedCount,
  enqueued
})

/** The answer's `data`, enveloped. */
const dataOf = (answer: Answer) => {
  expect(outcome(answer)).toEqual([200, undefined])
  expect(answer.json.meta).toEqual({ requestId: answer.headers.get("x-request-id") })
  return answer.json.data
}

const stored = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const inbox = yield* sql<{ id: string; messageId: string | null }>`
    select id, message_id as "messageId" from channel_inbox
    order by (select seq from queue_jobs where payload ->> 'inboxId' = channel_inbox.id)`
  const jobs = yield* sql<{ inboxId: string; serialKey: string }>`
    select payload ->> 'inboxId' as "inboxId", serial_key as "serialKey" from queue_jobs
    where queue = 'channel-inbound' order by seq`
  const keys = yield* sql<{ key: string }>`select key from dedupe_keys order by key`
  return { inbox, jobs, keys: keys.map(({ key }) => key) }
})

const right = { "hub.mode": "subscribe", "hub.verify_token": verifyToken, "hub.challenge": "1158201444" }

const failingQueue = Layer.effect(
  JobQueue,
  Effect.map(JobQueue, (queue) => ({
    ...queue,
    prepare: () => Effect.die(new JobQueueError({ message: "The job queue cannot be reached." }))
  }))
).pipe(Layer.provide(layerTable))

for (const raw of [true, false])
  eachEngineLive(`Webhooks of messaging providers, ${raw ? "raw" : "through the router"}`, (it) => {
    const served = <A, E, R>(effect: Effect.Effect<A, E, R>, options: Options = {}) =>
      Effect.zipRight(reset, effect).pipe(Effect.provide(webhookServer({ ...options, raw })), Effect.scoped)

    for (const channel of ["whatsapp", "messenger"]) {
      it.effect(`${channel}: a challenge is returned directly as the body`, () =>
        served(
          Effect.gen(function* () {
            const answer = yield* challenge(channel, right)
            expect([answer.status, answer.text]).toEqual([200, "1158201444"])
            expect(answer.headers.get("content-type")).toMatch(/^text\/plain/)
            // Slashes may stand in a query as they are.
            const query = `hub.mode=subscribe&hub.verify_token=${verifyToken}&hub.challenge=a//b/c///`
            const slashed = yield* request(`/api/webhooks/${channel}?${query}`, {})
            expect([slashed.status, slashed.text]).toEqual([200, "a//b/c///"])
          })
        )
      )

      it.effect(`${channel}: a challenge with a wrong token or mode is 403`, () =>
        served(
          Effect.gen(function* () {
            const { "hub.verify_token": _, ...tokenless } = right
            const { "hub.mode": __, ...modeless } = right
            for (const query of [
              { ...right, "hub.verify_token": "another" },
              { ...right, "hub.verify_token": "" },
              { ...right, "hub.verify_token": `${verifyToken}x` },
              { ...right, "hub.mode": "unsubscribe" },
              tokenless,
              modeless,
              {}
            ]) {
              expectFailure(yield* challenge(channel, query), 403, "FORBIDDEN")
            }
          })
        )
      )

      it.effect(`${channel}: the app secret is not the verify token`, () =>
        served(
          Effect.flatMap(challenge(channel, { ...right, "hub.verify_token": appSecret }), (answer) =>
            Effect.sync(() => expectFailure(answer, 403, "FORBIDDEN"))
          )
        )
      )

      it.effect(`${channel}: a valid subscription without a challenge is 400`, () =>
        served(
          Effect.gen(function* () {
            const { "hub.challenge": _, ...rest } = right
            expectFailure(yield* challenge(channel, rest), 400, "VALIDATION_ERROR")
            expectFailure(
              yield* challenge(channel, { ...rest, "hub.challenge": "" }),
              400,
              "VALIDATION_ERROR"
            )
          })
        )
      )

      it.effect(`${channel}: without a configured verify token or app secret the answer is 503`, () =>
        served(
          Effect.gen(function* () {
            expectFailure(yield* challenge(channel, right), 503, "NOT_CONFIGURED")
            expectFailure(yield* deliver(channel, {}), 503, "NOT_CONFIGURED")
            expectFailure(yield* deliver(channel, {}, { signature: null }), 503, "NOT_CONFIGURED")
          }),
          { verifyToken: null, appSecret: null }
        )
      )

      it.effect(`${channel}: a body whose signature is missing or wrong is 401, and nothing is stored`, () =>
        served(
          Effect.gen(function* () {
            const body = JSON.stringify(whatsapp(["wamid.1"]))
            const good = signatureOf(body)
            for (const signature of [
              null,
              "",
              "sha256=",
              good.slice(7),
              good.slice(0, -1),
              `${good}0`,
              `${good},${good}`,
              good.toUpperCase(),
              good.replace("sha256=", "sha1="),
              `sha256=${"g".repeat(64)}`,
              `sha256=${"0".repeat(64)}`,
              signatureOf(`${body} `),
              signatureOf(body, verifyToken)
            ]) {
              expectFailure(yield* deliver(channel, body, { signature }), 401, "UNAUTHORIZED")
            }
            expect(yield* stored).toEqual({ inbox: [], jobs: [], keys: [] })
          })
        )
      )

      it.effect(`${channel}: a signed body that is not JSON is 400, one without events is acknowledged`, () =>
        served(
          Effect.gen(function* () {
            for (const body of ["{", "", "\u0000", new Uint8Array([0xff, 0xfe]), "[".repeat(10_000)]) {
              expectFailure(yield* deliver(channel, body), 400, "VALIDATION_ERROR")
            }
            for (const body of [{}, [], null, 7, { entry: [] }, { object: "page", entry: [{}] }]) {
              expect(dataOf(yield* deliver(channel, body))).toEqual(result(0))
            }
          })
        )
      )

      it.effect(`${channel}: a body over 4 MiB is 413, one of 4 MiB is read`, () =>
        served(
          Effect.gen(function* () {
            const limit = 4 * 1_048_576
            const largest = `"${"x".repeat(limit - 2)}"`
            expect(dataOf(yield* deliver(channel, largest))).toEqual(result(0))
            expectFailure(yield* deliver(channel, `${largest} `), 413, "PAYLOAD_TOO_LARGE")
          })
        )
      )
    }

    it.effect("queue each message once, in order, by contact, with the event and the provider's item", () =>
      served(
        Effect.gen(function* () {
          expect(dataOf(yield* deliver("whatsapp", whatsapp(["a", "b", "c"])))).toEqual(result(3))
          const { inbox, jobs, keys } = yield* stored
          expect(inbox.map(({ messageId }) => messageId)).toEqual(["a", "b", "c"])
          expect(jobs).toEqual(
            inbox.map(({ id }) => ({ inboxId: id, serialKey: "whatsapp:pn_1:491700000001" }))
          )
          expect(keys).toEqual(["inbound:whatsapp:a", "inbound:whatsapp:b", "inbound:whatsapp:c"])
          const sql = yield* SqlClient.SqlClient
          const [row] = yield* sql<{ event: { text: string }; raw: { message: { id: string } } }>`
          select event, raw from channel_inbox where message_id = 'b'`
          expect([row?.event.text, row?.raw.message.id]).toEqual(["text of b", "b"])
        })
      )
    )

    it.effect("count repeats, also within one POST, and queue them once", () =>
      served(
        Effect.gen(function* () {
          expect(dataOf(yield* deliver("whatsapp", whatsapp(["a", "b", "a", "a"])))).toEqual(result(2, 2))
          expect(dataOf(yield* deliver("whatsapp", whatsapp(["b", "c"])))).toEqual(result(1, 1))
          expect(dataOf(yield* deliver("whatsapp", whatsapp(["a", "b", "c"])))).toEqual(result(0, 3))
          expect((yield* stored).inbox.map(({ messageId }) => messageId)).toEqual(["a", "b", "c"])
          expect((yield* stored).jobs).toHaveLength(3)
        })
      )
    )

    it.effect("hold a dedupe key for 24 hours: the same id is new again after that", () =>
      served(
        Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          expect(dataOf(yield* deliver("whatsapp", whatsapp(["a"])))).toEqual(result(1))
          const [kept] = yield* sql<{ hours: number }>`
          select round(extract(epoch from expires_at - now()) / 3600)::int as hours from dedupe_keys`
          expect(kept?.hours).toBe(24)
          yield* sql`update dedupe_keys set expires_at = now() + interval '1 minute'`
          expect(dataOf(yield* deliver("whatsapp", whatsapp(["a"])))).toEqual(result(0, 1))
          yield* sql`update dedupe_keys set expires_at = now() - interval '1 millisecond'`
          expect(dataOf(yield* deliver("whatsapp", whatsapp(["a", "a"])))).toEqual(result(1, 1))
          expect(dataOf(yield* deliver("whatsapp", whatsapp(["a"])))).toEqual(result(0, 1))
        })
      )
    )

    it.effect("keep the ids of two providers apart", () =>
      served(
        Effect.gen(function* () {
          const page = {
            object: "page",
            entry: [
              {
                id: "page_1",
                messaging: [
                  {
                    sender: { id: "psid" },
                    recipient: { id: "page_1" },
                    timestamp: 1,
                    message: { mid: "a", text: "x" }
                  }
                ]
              }
            ]
          }
          expect(dataOf(yield* deliver("whatsapp", whatsapp(["a"])))).toEqual(result(1))
          expect(dataOf(yield* deliver("messenger", page))).toEqual(result(1))
          expect((yield* stored).jobs.map(({ serialKey }) => serialKey)).toEqual([
            "whatsapp:pn_1:491700000001",
            "messenger:page_1:psid"
          ])
        })
      )
    )

    it.effect("queue a message once for twenty concurrent POSTs, with correct counters", () =>
      served(
        Effect.gen(function* () {
          const answers = yield* Effect.all(
            Array.from({ length: 20 }, (_, place) =>
              deliver(
                "whatsapp",
                whatsapp(place % 2 === 0 ? ["x", "y", `own-${place}`] : [`own-${place}`, "y", "x"])
              )
            ),
            { concurrency: "unbounded" }
          )
          const totals = answers.map(dataOf)
          expect(totals.reduce((sum, { enqueued }) => sum + enqueued, 0)).toBe(22)
          expect(totals.reduce((sum, { dedupedCount }) => sum + dedupedCount, 0)).toBe(38)
          const { inbox, jobs, keys } = yield* stored
          expect([inbox.length, jobs.length, keys.length]).toEqual([22, 22, 22])
          expect(new Set(jobs.map(({ inboxId }) => inboxId))).toEqual(new Set(inbox.map(({ id }) => id)))
        })
      )
    )

    it.effect("answer 503 when nothing can be queued, and then nothing is marked as seen", () =>
      Effect.gen(function* () {
        yield* served(
          Effect.gen(function* () {
            expectFailure(yield* deliver("whatsapp", whatsapp(["a", "b"])), 503, "SERVICE_UNAVAILABLE")
            expect(yield* stored).toEqual({ inbox: [], jobs: [], keys: [] })
          }),
          { inbox: InboundEvents.Default.pipe(Layer.provide(failingQueue)) }
        ).pipe(Effect.provide(layerTable))
        yield* served(
          Effect.map(deliver("whatsapp", whatsapp(["a", "b"])), (answer) =>
            expect(dataOf(answer)).toEqual(result(2))
          )
        )
      })
    )

    it.effect("answer 503 when a status cannot be stored, and then no message is marked as seen", () =>
      served(
        Effect.gen(function* () {
          const body = whatsapp(["a"])
          const value = {
            ...body.entry[0]?.changes[0]?.value,
            statuses: [{ id: "wamid.out", status: "read" }]
          }
          const both = { ...body, entry: [{ id: "waba", changes: [{ field: "messages", value }] }] }
          expectFailure(yield* deliver("whatsapp", both), 503, "SERVICE_UNAVAILABLE")
          expect(yield* stored).toEqual({ inbox: [], jobs: [], keys: [] })
        }),
        { recordDelivery: () => Effect.die(new Error("the database is gone")) }
      )
    )

    const noted: Array<DeliveryStatus> = []
    it.effect("apply statuses and acknowledge unknown kinds: neither is queued nor counted", () =>
      served(
        Effect.gen(function* () {
          const value = {
            metadata: { phone_number_id: "pn_1" },
            statuses: [
              {
                id: "wamid.1",
                status: "delivered",
                biz_opaque_callback_data: "out_01jz0000000000000000000000"
              },
              { id: "wamid.2", status: "failed", errors: [{ code: 131047, title: "Re-engagement message" }] },
              { id: "wamid.3", status: "warning" }
            ],
            messages: [
              { from: "491700000001", id: "r", type: "reaction", reaction: { emoji: "x", message_id: "y" } }
            ]
          }
          const answer = yield* deliver("whatsapp", {
            entry: [{ id: "waba", changes: [{ field: "messages", value }] }]
          })
          expect(dataOf(answer)).toEqual(result(0))
          expect(
            noted.map(({ providerMessageId, delivery, error, outboxId }) => [
              providerMessageId,
              delivery,
              error,
              outboxId
            ])
          ).toEqual([
            ["wamid.1", "delivered", null, "out_01jz0000000000000000000000"],
            ["wamid.2", "failed", "131047 Re-engagement message", null]
          ])
          expect(yield* stored).toEqual({ inbox: [], jobs: [], keys: [] })
        }),
        { recordDelivery: (status) => Effect.sync(() => noted.push(status)) }
      )
    )

    it.effect("neither count nor store the echo of our own reply, and queue any other echo", () =>
      served(
        Effect.gen(function* () {
          const echo = (mid: string, metadata?: string) => ({
            sender: { id: "page_1" },
            recipient: { id: "psid" },
            timestamp: 1767225600000,
            message: { mid, text: "hello", is_echo: true, ...(metadata === undefined ? {} : { metadata }) }
          })
          const messaging = [echo("m_ours", "out_01jz0000000000000000000000"), echo("m_human")]
          const answer = yield* deliver("messenger", { object: "page", entry: [{ id: "page_1", messaging }] })
          expect(dataOf(answer)).toEqual(result(1))
          expect((yield* stored).inbox.map(({ messageId }) => messageId)).toEqual(["m_human"])
        }),
        { isOwn: ({ origin }) => origin?.outboxId !== undefined }
      )
    )

    it.effect("queue a new alias of a contact once, and do not count it", () =>
      served(
        Effect.gen(function* () {
          const value = {
            metadata: { phone_number_id: "pn_1" },
            user_id_update: [
              { wa_id: "491700000001", user_id: { previous: "DE.1", current: "DE.2" }, timestamp: 1767225600 }
            ]
          }
          const body = { entry: [{ id: "waba", changes: [{ field: "user_id_update", value }] }] }
          expect(dataOf(yield* deliver("whatsapp", body))).toEqual(result(0))
          expect(dataOf(yield* deliver("whatsapp", body))).toEqual(result(0))
          const { inbox, jobs } = yield* stored
          expect([inbox.length, jobs.map(({ serialKey }) => serialKey)]).toEqual([1, ["whatsapp:pn_1:DE.2"]])
        })
      )
    )

    it.effect("remove NUL and lone surrogates from stored text", () =>
      served(
        Effect.gen(function* () {
          const body = JSON.stringify(whatsapp(["a"])).replace(
            "text of a",
            "a\\u0000b\\ud800c \\ud83d\\ude00"
          )
          expect(dataOf(yield* deliver("whatsapp", body))).toEqual(result(1))
          const sql = yield* SqlClient.SqlClient
          const [row] = yield* sql<{ event: { text: string }; raw: { message: { text: { body: string } } } }>`
          select event, raw from channel_inbox`
          expect(row?.event.text).toBe("ab\ufffdc 😀")
          expect(row?.raw.message.text.body).toBe("ab\ufffdc 😀")
        })
      )
    )

    it.effect("store concurrent deliveries in one transaction; one that cannot be stored fails alone", () =>
      Effect.gen(function* () {
        const open = yield* Deferred.make<void>()
        const sizes: Array<number> = []
        const slow = Layer.effect(
          InboundEvents,
          Effect.map(InboundEvents, (inbox) =>
            InboundEvents.make({
              ...inbox,
              accept: (arrivals) =>
                Effect.gen(function* () {
                  sizes.push(arrivals.length)
                  if (sizes.length === 1) yield* Deferred.await(open)
                  // As the database refuses a value that it cannot take.
                  const refused = arrivals.some(
                    ({ event }) => event._tag === "Message" && event.messageId === "poison"
                  )
                  if (refused) return yield* new InboundEventRefused({ cause: "poison" })
                  return yield* inbox.accept(arrivals)
                })
            })
          )
        ).pipe(Layer.provide(InboundEvents.Default), Layer.provideMerge(layerTable))
        yield* served(
          Effect.gen(function* () {
            const send = (id: string) => Effect.fork(deliver("whatsapp", whatsapp([id])))
            const first = yield* send("first")
            yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => sizes.length === 1 })
            const others = yield* Effect.forEach(["b", "poison", "c", "b"], send)
            // All of them have reached the server, whose first transaction is still open.
            yield* Effect.sleep("300 millis")
            yield* Deferred.succeed(open, undefined)
            const answers = yield* Effect.forEach([first, ...others], (fiber) => Effect.flatten(fiber.await))
            expect(answers.map(({ status }) => status)).toEqual([200, 200, 503, 200, 200])
            expect(sizes.slice(0, 2)).toEqual([1, 4])
            expect((yield* stored).inbox.map(({ messageId }) => messageId).toSorted()).toEqual([
              "b",
              "c",
              "first"
            ])
          }),
          { inbox: slow }
        ).pipe(Effect.provide(layerTable))
      })
    )
  })
