/**
 * One member of each closed set, as docs/design/adding.md describes it: the line of the record that names the set, and
 * the rest, which the compiler asks for.
 */
import type { Addition, Insertion } from "./Copy.ts"

interface Additions {
  readonly added: ReadonlyArray<Addition>
  readonly inserted: ReadonlyArray<Insertion>
}

/** The source type NOTE, the permission `agents:read`, the code AGENT_ASLEEP, and a group with one endpoint. */
export const records: Additions = {
  added: [
    {
      file: "src/http/public/agents/AgentApi.ts",
      text: `import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as Schema from "effect/Schema"
import { AgentAsleep } from "../../../domain/Errors.ts"
import { AgentKeyAuth, RequiredPermission } from "../../Auth.ts"
import { failure, success, UpdatedAt } from "../../Envelope.ts"

export const AgentApi = HttpApiGroup.make("agent")
  .add(
    HttpApiEndpoint.get("me", "/v1/agents/me")
      .setUrlParams(Schema.Struct({ asleep: Schema.optional(Schema.String) }))
      .addSuccess(success(Schema.Struct({ id: Schema.String })))
      .addError(failure(AgentAsleep))
      .annotate(RequiredPermission, "agents:read")
      .annotate(OpenApi.Summary, "Read the key's agent")
  )
  .annotate(UpdatedAt, "2026-01-01T00:00:00.000Z")
  .middleware(AgentKeyAuth)
`
    }
  ],
  inserted: [
    {
      file: "src/domain/knowledge/Source.ts",
      after: `define("SITEMAP", { given: SitemapConfig, stored: SitemapConfig, refreshable: true }),`,
      text: `
  define("NOTE", {
    given: Schema.Struct({ words: Text }),
    stored: Schema.Struct({ words: Text }),
    refreshable: false
  }),`
    },
    {
      file: "src/domain/accounts/Access.ts",
      after: `const others = ["trace_read", `,
      text: `"agents:read", `
    },
    {
      file: "src/domain/Errors.ts",
      after: `/** Every error class by its code,`,
      text: ` */
export class AgentAsleep extends Schema.TaggedError<AgentAsleep>()("AGENT_ASLEEP", fields, status(409)) {}
/**`
    },
    {
      file: "src/domain/Errors.ts",
      after: `export const errors = {`,
      text: `
  AGENT_ASLEEP: AgentAsleep,`
    },
    {
      file: "src/http/PublicApi.ts",
      after: `import { AgentRunsApi }`,
      text: ` from "./public/chat/AgentRunsApi.ts"
import { AgentApi } from "./public/agents/AgentApi.ts"
import type {}`
    },
    { file: "src/http/PublicApi.ts", after: `HttpApi.make("public")`, text: `\n  .add(AgentApi)` }
  ]
}

/** The files that do not compile after {@link records}. */
export const incomplete = [
  "src/app/Http.ts",
  "src/app/cli/Ingest.ts",
  "src/client/Routes.ts",
  "src/readers/Readers.ts",
  "src/ui/dashboard/pages/agents/Keys.tsx",
  "src/ui/dashboard/pages/sources/AddSource.tsx",
  // It shows the name of the type, which words.ts lacks.
  "src/ui/dashboard/pages/sources/Source.tsx",
  "src/ui/dashboard/pages/sources/SourceList.tsx",
  "src/ui/dashboard/text/codes.ts"
]

/** What the compiler asks for, and the channel `pager`, which is registered where it is written. */
export const completion: Additions = {
  added: [
    {
      file: "src/readers/Note.ts",
      text: `import * as Stream from "effect/Stream"
import type { Reader } from "./Reader.ts"

export const reader: Reader<{ readonly words: string }> = {
  read: ({ words }) => Stream.make({ uri: "note:", title: "Note", format: "text" as const, content: words })
}
`
    },
    {
      file: "src/http/public/agents/AgentHandlers.ts",
      text: `import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as Effect from "effect/Effect"
import { AgentAsleep } from "../../../domain/Errors.ts"
import { Api } from "../../Api.ts"
import { CurrentKey } from "../../Auth.ts"

export const layer = HttpApiBuilder.group(Api, "agent", (handlers) =>
  handlers.handle("me", ({ urlParams }) =>
    urlParams.asleep === undefined
      ? Effect.map(CurrentKey, ({ agentId }) => ({ id: agentId }))
      : Effect.fail(new AgentAsleep({ message: "The agent is asleep." }))
  )
)
`
    },
    {
      file: "src/channels/pager/Adapter.ts",
      text: `import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import type { ChannelAdapter } from "../../capabilities/ChannelAdapters.ts"
import { Unauthorized } from "../../domain/Errors.ts"
import { fieldsOf, identifierOf, textOf } from "../Fields.ts"
import { arrivalOrIgnored, emptyDelivery } from "../Normalized.ts"

export const pagerAdapter: ChannelAdapter = {
  name: "pager",
  title: "Pager",
  form: { account: "Line", secrets: [] },
  webhook: "account",
  verify: ({ header }, access) =>
    access !== null && header("x-pager-token") === Redacted.value(access.accessToken)
      ? Either.void
      : Either.left(new Unauthorized({ message: "The token is missing or wrong." })),
  normalize: (body, now, access) => {
    const { from, id } = fieldsOf(body)
    const [sender, messageId] = [identifierOf(from), identifierOf(id)]
    if (access === null || sender === undefined || messageId === undefined) return emptyDelivery
    return arrivalOrIgnored({
      raw: body,
      event: {
        _tag: "Message",
        channel: "pager",
        accountId: access.externalId,
        messageId,
        from: [{ kind: "line", value: sender }],
        kind: "text",
        text: textOf(fieldsOf(body)["text"]),
        media: [],
        standby: false,
        timestamp: DateTime.toUtc(now)
      }
    })
  },
  prove: ({ externalId }) => Effect.succeed({ externalId, profile: {} }),
  maxTextLength: 1_000,
  maxCaptionLength: 0,
  formatText: (text) => text,
  fileTypes: {},
  send: (_to, { outboxId }) => Effect.succeed(outboxId),
  markSeen: () => Effect.void,
  locate: () => Effect.succeed({ url: "" }),
  read: () => Effect.succeedNone
}
`
    }
  ],
  inserted: [
    {
      file: "src/readers/Readers.ts",
      after: `import type { Reader, ReadOptions } from "./Reader.ts"`,
      text: `\nimport * as Note from "./Note.ts"`
    },
    { file: "src/readers/Readers.ts", after: `SITEMAP: Sitemap.reader,`, text: `\n  NOTE: Note.reader,` },
    {
      file: "src/client/Routes.ts",
      after: `export const routes = {`,
      text: `\n  agent: { me: get("/v1/agents/me") },`
    },
    {
      file: "src/ui/dashboard/pages/sources/SourceList.tsx",
      after: `membersOf<SourceType>({`,
      text: `\n  NOTE: true,`
    },
    { file: "src/app/cli/Ingest.ts", after: `IMAGE: null,`, text: `\n  NOTE: null,` },
    {
      file: "src/http/server/Server.ts",
      after: `import * as Layer from "effect/Layer"`,
      text: `\nimport * as AgentHandlers from "../public/agents/AgentHandlers.ts"`
    },
    {
      file: "src/http/server/Server.ts",
      after: `publicGroups = Layer.mergeAll(`,
      text: `\n  AgentHandlers.layer,`
    },
    {
      file: "src/ui/dashboard/pages/agents/Keys.tsx",
      after: `trace_read: [t.trace, t.traceMeans],`,
      text: `\n    "agents:read": [t.trace, t.traceMeans],`
    },
    {
      file: "src/ui/dashboard/pages/sources/AddSource.tsx",
      after: `SITEMAP: crawlForm("SITEMAP"),`,
      text: `
    NOTE: {
      title: names.NOTE,
      create: () => createSource({ ...commonFields(names.NOTE), type: "NOTE", config: { words: address } }),
      fields: () => null
    },`
    },
    {
      file: "src/ui/dashboard/pages/sources/words.ts",
      after: `SITEMAP: "Sitemap",`,
      text: `\n    NOTE: "Note",`
    },
    {
      file: "src/ui/dashboard/pages/sources/words.ts",
      after: `title: "Quellen",`,
      text: `\n    NOTE: "Notiz",`
    },
    {
      file: "src/ui/dashboard/text/codes.ts",
      after: `Record<ErrorCode, string>> = {`,
      text: `\n  AGENT_ASLEEP: "Der Agent schläft.",`
    },
    {
      file: "src/channels/BuiltIn.ts",
      after: `import * as GraphFiles from "./GraphFiles.ts"`,
      text: `\nimport { pagerAdapter } from "./pager/Adapter.ts"`
    },
    { file: "src/channels/BuiltIn.ts", after: `const builtIn = [\n`, text: `        pagerAdapter,\n` }
  ]
}
