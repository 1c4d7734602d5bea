/** `spoke listen` and `spoke trigger`: events for developers whose machine has no public address. */
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { EventType, ReceivedEvent } from "../../domain/events/Webhook.ts"
import * as Arguments from "./Arguments.ts"
import { briefly, manage, type ManageFlags, whileRestarting } from "./Connection.ts"
import * as Output from "./Output.ts"

interface ListenFlags extends ManageFlags {
  readonly forwardTo?: string | undefined
  readonly event: ReadonlyArray<EventType>
  readonly full?: true | undefined
  readonly json?: true | undefined
}

const Started = Schema.Struct({
  listener: Schema.Struct({ id: Schema.String }),
  secret: Schema.String
})
const EventBatch = Schema.Struct({
  events: Schema.Array(ReceivedEvent),
  received: Schema.NullOr(Schema.String)
})
const Stopped = Schema.Struct({ deleted: Schema.Literal(true) })
const Triggered = Schema.Struct({ webhooks: Schema.Int })

/** Seconds that one request waits for an event. */
const waitSeconds = 20
/** Time-out of one forwarded call, the same as for webhooks. */
const callTimeout = Duration.seconds(10)
/** Time for forwarding before the server is asked again: it removes a listener that has not asked for two minutes. */
const maxForwardTime = Duration.seconds(60)

/** Forwards the event, and returns the local server's response as a line. */
const forward = (address: string, { body, headers }: ReceivedEvent) =>
  Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const began = yield* Clock.currentTimeMillis
    const { status } = yield* client.execute(
      HttpClientRequest.post(address).pipe(
        HttpClientRequest.setHeaders(headers),
        HttpClientRequest.bodyText(body, "application/json")
      )
    )
    return `${status} in ${(yield* Clock.currentTimeMillis) - began} ms`
  }).pipe(
    Effect.scoped,
    Effect.timeoutFail({ duration: callTimeout, onTimeout: () => "no answer in 10 seconds" }),
    Effect.catchAll((failure) => Effect.succeed(typeof failure === "string" ? failure : "no answer"))
  )

const listen = ({ event, forwardTo, full, json, ...flags }: ListenFlags) =>
  Effect.gen(function* () {
    const server = yield* manage(flags)
    const options = {
      ...(event.length === 0 ? {} : { events: event }),
      payload: full === true ? "full" : "thin"
    }
    const begin = HttpClientRequest.post("/listeners").pipe(HttpClientRequest.bodyUnsafeJson(options))
    // A listener that is no longer polled expires.
    const end = (id: string) => briefly(server.call(Stopped, HttpClientRequest.del(`/listeners/${id}`)))
    const { listener, secret } = yield* Effect.acquireRelease(server.call(Started, begin), (started) =>
      end(started.listener.id)
    )
    yield* Output.note(`Listening. Events are signed with ${secret}`)
    let received: string | null = null
    /** Ids of the forwarded events of the last answer, while others of it are not forwarded yet. */
    const forwarded = new Set<string>()
    while (true) {
      const request: HttpClientRequest.HttpClientRequest = HttpClientRequest.post(
        `/listeners/${listener.id}/next`
      ).pipe(HttpClientRequest.bodyUnsafeJson({ received, waitSeconds }))
      const answer: typeof EventBatch.Type = yield* whileRestarting(server.call(EventBatch, request))
      const began = yield* Clock.currentTimeMillis
      let isTimeUp = false
      for (const one of answer.events) {
        if (forwarded.has(one.id)) continue
        isTimeUp = (yield* Clock.currentTimeMillis) - began >= Duration.toMillis(maxForwardTime)
        if (isTimeUp) break
        forwarded.add(one.id)
        yield* json === true ? Output.line(one.body) : Output.line(`${one.type} ${one.id} ${one.body}`)
        if (forwardTo !== undefined) yield* Output.note(`  ${forwardTo}: ${yield* forward(forwardTo, one)}`)
      }
      // Without a confirmation all of them are returned again, with the rest.
      received = isTimeUp ? null : answer.received
      if (!isTimeUp) forwarded.clear()
    }
  }).pipe(Effect.scoped)

const trigger = (type: EventType, flags: ManageFlags) =>
  Effect.gen(function* () {
    const server = yield* manage(flags)
    const request = HttpClientRequest.post("/events").pipe(HttpClientRequest.bodyUnsafeJson({ type }))
    const { webhooks } = yield* server.call(Triggered, request)
    yield* Output.note(
      webhooks === 0
        ? `No active webhook asks for ${type}.`
        : `An example of ${type} was sent to ${webhooks === 1 ? "a webhook" : `${webhooks} webhooks`}.`
    )
  })

const parseType = Arguments.oneOf(EventType.literals)

export const listenCommand = (run: Arguments.Run) =>
  Arguments.command(
    "listen",
    "Print the events of the organisation as they happen, and forward them to a local address, signed like those of a webhook.",
    "spoke listen --forward-to http://localhost:4000/spoke",
    "spoke listen --event turn.settled --full --json | jq .data.reply"
  )
    .option("--forward-to <address>", "local address that each event is forwarded to", Arguments.address)
    .option(
      "--event <type>",
      "only events of this type; may be repeated",
      (value: string, before: ReadonlyArray<EventType>) => [...before, parseType(value)],
      []
    )
    .option("--full", "with the contents, not only ids")
    .addOption(Arguments.json)
    .addOption(Arguments.url)
    .addOption(Arguments.token)
    .addOption(Arguments.tokenFile)
    .action((flags) => run(listen(flags)))

export const triggerCommand = (run: Arguments.Run) =>
  Arguments.command(
    "trigger",
    "Send an example event to every active webhook and listener that subscribes to its type. Its ids do not exist.",
    "spoke trigger turn.settled"
  )
    .argument("<type>", EventType.literals.join(", "), parseType)
    .addOption(Arguments.url)
    .addOption(Arguments.token)
    .addOption(Arguments.tokenFile)
    .action((type, flags) => run(trigger(type, flags)))
