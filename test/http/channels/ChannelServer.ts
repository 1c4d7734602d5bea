/** Configurations of channels over real HTTP, with stubs of the providers whose accounts a test sets. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as HttpClient from "@effect/platform/HttpClient"
import * as ProviderHttp from "../../../src/capabilities/ModelRuntime/ProviderHttp.ts"
import { emailAdapter } from "../../../src/channels/email/Adapter.ts"
import { telegramAdapter } from "../../../src/channels/telegram/Adapter.ts"
import { startTelegram } from "../../servers/TelegramStub.ts"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { createServer } from "node:http"
import * as SqlAudit from "../../../src/capabilities/AuditLog/Sql.ts"
import { layerScrypt } from "../../../src/capabilities/Credentials/Scrypt.ts"
import { layerSql } from "../../../src/capabilities/KeyStore/Sql.ts"
import { layer as layerSecretBox } from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import { ChannelError } from "../../../src/capabilities/ChannelAdapters.ts"
import { type MailSubmission, SubmissionError } from "../../../src/capabilities/Mailer.ts"
import * as BuiltIn from "../../../src/channels/BuiltIn.ts"
import { Graph } from "../../../src/channels/Graph.ts"
import { GraphFiles } from "../../../src/channels/GraphFiles.ts"
import { ChannelProof } from "../../../src/usecases/channels/ChannelProof.ts"
import { channelSettings } from "../../channels/Settings.ts"
import * as Boundary from "../../../src/http/server/Boundary.ts"
import { AgentsApi } from "../../../src/http/hosted/agents/AgentsApi.ts"
import { AgentsHandlers } from "../../../src/http/hosted/agents/AgentsHandlers.ts"
import { AuditApi } from "../../../src/http/hosted/accounts/AuditApi.ts"
import { AuditHandlers } from "../../../src/http/hosted/accounts/AuditHandlers.ts"
import { ChannelsApi } from "../../../src/http/hosted/channels/ChannelsApi.ts"
import { ChannelsHandlers } from "../../../src/http/hosted/channels/ChannelsHandlers.ts"
import * as SessionAuth from "../../../src/http/hosted/accounts/SessionAuth.ts"
import * as SessionCookie from "../../../src/http/hosted/accounts/SessionCookie.ts"
import { SessionsApi } from "../../../src/http/hosted/accounts/SessionsApi.ts"
import { SessionsHandlers } from "../../../src/http/hosted/accounts/SessionsHandlers.ts"
import * as OperatorAuth from "../../../src/http/operator/OperatorAuth.ts"
import { TenantsApi } from "../../../src/http/operator/TenantsApi.ts"
import { TenantsHandlers } from "../../../src/http/operator/TenantsHandlers.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { ChannelStore } from "../../../src/store/channels/Channels.ts"
import { SessionStore } from "../../../src/store/accounts/Sessions.ts"
import { SubscriptionStore } from "../../../src/store/billing/Subscriptions.ts"
import { TenantStore } from "../../../src/store/accounts/Tenants.ts"
import { UserStore } from "../../../src/store/accounts/Users.ts"
import { Accounts } from "../../../src/usecases/accounts/Accounts.ts"
import { Agents } from "../../../src/usecases/agents/Agents.ts"
import { AuditTrail } from "../../../src/usecases/accounts/AuditTrail.ts"
import { Channels } from "../../../src/usecases/channels/Channels.ts"
import { Subscriptions } from "../../../src/usecases/billing/Subscriptions.ts"
import { layerArtifacts } from "../../MemoryArtifacts.ts"
import { layerNoRevocations } from "../../NoRevocations.ts"
import { reset } from "../../TestDatabase.ts"
import { appUrl, call, operatorToken, signedIn } from "../accounts/AccountsServer.ts"
import { openGate } from "../OpenGate.ts"

const Surface = HttpApi.make("spoke")
  .add(TenantsApi)
  .add(SessionsApi)
  .add(AgentsApi)
  .add(AuditApi)
  .add(ChannelsApi)

const Stores = Layer.mergeAll(
  AgentStore.Default,
  ChannelStore.Default,
  SessionStore.Default,
  SubscriptionStore.Default,
  TenantStore.Default,
  UserStore.Default
)

const Server = Layer.suspend(() => {
  const handlers = Layer.mergeAll(
    TenantsHandlers,
    SessionsHandlers,
    AgentsHandlers,
    AuditHandlers,
    ChannelsHandlers
  ).pipe(
    Layer.provide(SessionAuth.layer(Surface, appUrl).pipe(Layer.provide(openGate))),
    Layer.provide(SessionCookie.layer(appUrl)),
    Layer.provide(OperatorAuth.layer(Option.some(Redacted.make(operatorToken))))
  )
  return HttpApiBuilder.serve().pipe(
    Layer.provide(Boundary.layer),
    Layer.provide(Layer.provide(HttpApiBuilder.api(Surface), handlers)),
    Layer.provide(Layer.mergeAll(Accounts.Default, Agents.Default, Channels.Default, Subscriptions.Default)),
    Layer.provide(ChannelProof.Default),
    Layer.provide(channelSettings()),
    Layer.provide(
      Layer.unwrapEffect(
        Effect.map(HttpClient.HttpClient, (http) =>
          BuiltIn.layerWithGraph({
            appSecret: null,
            others: [telegramAdapter(http, stub?.url ?? ""), emailAdapter(mails)]
          })
        )
      ).pipe(Layer.provide([graph, Layer.mock(GraphFiles, {}), ProviderHttp.layer]))
    ),
    Layer.provide([layerArtifacts, layerNoRevocations]),
    Layer.provide(AuditTrail.Default),
    Layer.provide(SqlAudit.layerSql),
    Layer.provide(layerSql),
    Layer.provide(layerScrypt({ log2N: 10, r: 8, p: 1 })),
    Layer.provideMerge(Stores),
    Layer.provideMerge(layerSecretBox([Redacted.make("a master secret of the tests, long enough")])),
    Layer.provideMerge(NodeHttpServer.layer(() => createServer(), { port: 0, host: "127.0.0.1" }))
  )
})

export const accessToken = "EAA-token-canary-90b2"
export const whatsapp = { channel: "whatsapp", externalId: "106540352242922", accessToken }

/** Passwords at mail servers, by `user@host`. */
export const mailboxes = new Map<string, string>()

/** The passwords that mail servers got, as `host password`. */
export const logins: Array<string> = []

const mails: typeof MailSubmission.Service = {
  verify: ({ host, password, user }) =>
    Effect.suspend(() => {
      logins.push(`${host} ${Redacted.value(password)}`)
      return mailboxes.get(`${user}@${host}`) === Redacted.value(password)
        ? Effect.void
        : new SubmissionError({
            reason: "Refused",
            message: "The mail server refuses the user or the password.",
            retryable: false
          })
    }),
  submit: () => Effect.dieMessage("Nothing is sent here.")
}

/** The account of each token at the provider. An empty account refuses the token. */
export const accounts = new Map<string, string>()
/** Errors of the next calls. After them the provider answers. */
export const outages: Array<ChannelError> = []

const graph = Layer.succeed(Graph, {
  post: () => Effect.dieMessage("Nothing is sent here."),
  get: (path, token) =>
    Effect.suspend((): Effect.Effect<unknown, ChannelError> => {
      const outage = outages.shift()
      if (outage !== undefined) return Effect.fail(outage)
      const [named = ""] = path.split("?")
      const known = accounts.get(Redacted.value(token)) ?? "any"
      const id = known === "any" && named !== "me" ? named : known
      const refused = known === "" || (named !== "me" && known !== "any" && known !== named)
      return refused
        ? Effect.fail(
            new ChannelError({
              reason: "Refused",
              message: "The provider refused the channel's access (code 190).",
              retryable: false
            })
          )
        : Effect.succeed({ id })
    })
})

export const start = Effect.gen(function* () {
  yield* reset
  accounts.clear()
  mailboxes.clear()
  logins.length = 0
  outages.length = 0
  const { cookie } = yield* signedIn("ada@example.com")
  const agent = yield* call("POST", "/api/agents", { cookie, body: { name: "Helper" } })
  return { cookie, channels: `/api/agents/${agent.data.agent.id}/channels`, agentId: agent.data.agent.id }
})

/** The stub of Telegram, while a test runs. */
let stub: Awaited<ReturnType<typeof startTelegram>> | undefined
export const telegram = () => {
  if (stub === undefined) throw new Error("The stub of Telegram is not running.")
  return stub
}

const withTelegram = Effect.acquireRelease(
  Effect.promise(async () => (stub = await startTelegram())),
  (open) => Effect.sync(() => open.close())
)

export const withServer = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.scoped(Effect.zipRight(withTelegram, Effect.provide(effect, Server)))
