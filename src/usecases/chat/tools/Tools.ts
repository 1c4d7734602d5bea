/** The tools of one turn: what the model is told of them, and what comes of calling them, scrubbed. */
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import { monotonicMillis } from "../../../domain/Elapsed.ts"
import type { ToolDeclaration } from "../../../capabilities/ModelRuntime.ts"
import { OutboundHttp } from "../../../capabilities/OutboundHttp.ts"
import { SecretBox } from "../../../capabilities/SecretBox.ts"
import {
  type CallingTurn,
  type Progress,
  type SourcedTool,
  ToolSource,
  type ToolSourceError
} from "../../../capabilities/ToolSource.ts"
import type { AgentScope } from "../../../domain/accounts/Access.ts"
import type { ChatTurnRequest } from "../../../domain/chat/ChatTurn.ts"
import * as Json from "../../../domain/Json.ts"
import type { JsonObject, JsonValue } from "../../../domain/Text.ts"
import { slotOf } from "../../../domain/agents/Tool.ts"
import * as CheapSpans from "../../../concurrency/CheapSpans.ts"
import { type StoredTool, ToolStore } from "../../../store/agents/Tools.ts"
import type { StartedTurn } from "../../../store/chat/Turns.ts"
import * as Arguments from "./Arguments.ts"
import * as Bindings from "./Bindings.ts"
import * as HttpTool from "./HttpTool.ts"
import * as McpTool from "./McpTool.ts"
import { Scrubber } from "./Scrub.ts"

/** Milliseconds that a server's list of tools is believed, and how many lists are kept. */
const listTtlMs = 300_000
const maxLists = 256
/** Characters of a failure that are shown; cut after scrubbing, so that no half of a credential is left. */
const maxFailureCharacters = 2_048
/** Credentials of a request that are looked for beside those that the tools use. */
const maxCredentials = 256

type Called = Effect.Effect<JsonValue, Bindings.ToolFailure>
interface Callable {
  readonly declaration: ToolDeclaration
  readonly call: (input: JsonObject, progress: Progress) => Called
}

export interface TurnTools {
  readonly declarations: ReadonlyArray<ToolDeclaration>
  /** Tools that could not be offered, and why: one entry a tool of the agent. */
  readonly unavailable: ReadonlyArray<{ readonly name: string; readonly failure: Bindings.ToolFailure }>
  /** The part of the call that the model may see: the tool's answer or its failure. */
  readonly call: (name: string, input: JsonObject | null, progress: Progress) => Called
  readonly scrubber: Scrubber
  /** True where calls are answered from a trace, which holds no personal data that was masked. */
  readonly isRecorded: boolean
}

/** JSON where it is JSON, so that escapes hide nothing; else the text. */
const parsed = (text: string): Either.Either<JsonValue, Bindings.ToolFailure> =>
  Either.orElse(Json.parse(text), ({ message, reason }) =>
    reason === "malformed"
      ? Either.right(text)
      : Either.left(Bindings.toolFailure("TOOL_FAILED", `TOOL_FAILED: the answer cannot be used: ${message}`))
  )

const headersFor = ({ definition: { auth } }: StoredTool, credential: string): Record<string, string> => {
  switch (auth.kind) {
    case "none":
      return {}
    case "bearer":
      return { authorization: `Bearer ${credential}` }
    case "basic":
      return { authorization: `Basic ${Buffer.from(credential).toString("base64")}` }
    case "header":
      return { [(auth.header ?? auth.name ?? "authorization").toLowerCase()]: credential }
  }
}

/** The two halves of a basic credential are secret as well. */
const partsOf = ({ definition: { auth } }: StoredTool, credential: string): ReadonlyArray<string> =>
  auth.kind === "basic" ? [credential, credential.slice(credential.indexOf(":") + 1)] : [credential]

const sourceCodes = {
  InvalidInput: "INVALID_ARGUMENTS",
  TimedOut: "TOOL_TIMEOUT",
  Failed: "TOOL_FAILED"
} as const

const sourceFailure = ({ message, reason }: ToolSourceError) =>
  Bindings.toolFailure(sourceCodes[reason], `${sourceCodes[reason]}: ${message}`)

const ofSource = ({ call, declaration }: SourcedTool, turn: CallingTurn): Callable => ({
  declaration,
  call: (input, progress) => Effect.mapError(call(input, turn, progress), sourceFailure)
})

const remoteName = (tool: string, name: string) => `${tool}_${name.replaceAll(/[^\w-]/g, "_")}`.slice(0, 64)

export class ChatTools extends Effect.Service<ChatTools>()("usecases/chat/tools/Tools", {
  effect: Effect.gen(function* () {
    const store = yield* ToolStore
    const source = yield* ToolSource
    const box = yield* SecretBox
    const http = yield* OutboundHttp
    const lists = new Map<
      string,
      { readonly until: number; readonly tools: ReadonlyArray<McpTool.RemoteTool> }
    >()

    const credentialOf = (tool: StoredTool, { toolCredentials = {} }: ChatTurnRequest) =>
      Effect.gen(function* () {
        const { auth } = tool.definition
        const slot = slotOf(auth)
        if (auth.kind === "none") return Either.right("")
        if (slot !== undefined) {
          const given = Object.hasOwn(toolCredentials, slot) ? toolCredentials[slot] : undefined
          return given === undefined || given === ""
            ? Either.left(
                Bindings.toolFailure("SESSION_CREDENTIAL_REQUIRED", `SESSION_CREDENTIAL_REQUIRED: ${slot}`)
              )
            : Either.right(given)
        }
        const opened = tool.secret === null ? Option.none() : yield* box.open("tool-secret", tool.secret)
        return Either.fromOption(opened, () =>
          Bindings.toolFailure("TOOL_FAILED", "TOOL_FAILED: its secret has to be set again")
        )
      })

    const overHttp = (
      tool: StoredTool,
      credential: Either.Either<string, Bindings.ToolFailure>,
      bound: Either.Either<ReadonlyArray<Bindings.Bound>, Bindings.ToolFailure>
    ): Callable => {
      const { description, http: target, parameters, timeout } = tool.definition
      const call = CheapSpans.fn("ChatTools.http")(function* (input: JsonObject) {
        if (target === undefined) return null
        const request = yield* Bindings.requestOf(target, input, yield* bound)
        const headers = { ...request.headers, ...headersFor(tool, yield* credential) }
        const response = yield* HttpTool.exchange(http, { ...request, headers }, timeout)
        return yield* parsed(HttpTool.contentOf(response))
      })
      return { declaration: { name: tool.name, description, parameters }, call }
    }

    const listed = CheapSpans.fn("ChatTools.listed")(function* <E>(
      key: string,
      list: Effect.Effect<ReadonlyArray<McpTool.RemoteTool>, E>
    ) {
      const now = yield* monotonicMillis
      const kept = lists.get(key)
      if (kept !== undefined && kept.until > now) return kept.tools
      const tools = yield* list
      lists.delete(key)
      lists.set(key, { until: now + listTtlMs, tools })
      for (const [oldest] of lists) {
        if (lists.size <= maxLists) break
        lists.delete(oldest)
      }
      return tools
    })

    /** Every tool of the server; the session is opened when it is first needed in the turn. */
    const overMcp = CheapSpans.fn("ChatTools.mcp")(function* (
      tool: StoredTool,
      url: string,
      credential: Either.Either<string, Bindings.ToolFailure>,
      scrubber: Scrubber
    ) {
      const secret = yield* credential
      const { timeout } = tool.definition
      const session = yield* Effect.cached(
        McpTool.open(http, { url, headers: headersFor(tool, secret) }, timeout)
      )
      // What a server lists may depend on the caller, so a list is not shared between callers.
      const caller = createHash("sha256").update(secret).digest("hex")
      const key = `${tool.id} ${tool.updatedAt.epochMillis} ${caller}`
      const remote = yield* listed(
        key,
        Effect.flatMap(session, ({ list }) => list)
      )
      return remote.map(({ name, description, inputSchema }): Callable => ({
        declaration: {
          name: remoteName(tool.name, scrubber.text(name)),
          description: scrubber.text(description).slice(0, 4_000).toWellFormed(),
          parameters: { ...scrubber.object(inputSchema), type: "object" }
        },
        call: (input) => Effect.flatMap(session, ({ call }) => call(name, input))
      }))
    })

    /** The tools of the agent, when it has any, with what this request brings for them. */
    const forTurn = CheapSpans.fn("ChatTools.forTurn")(function* (
      scope: AgentScope,
      request: ChatTurnRequest,
      { hasTools, sourceTools }: Pick<StartedTurn, "hasTools" | "sourceTools">,
      turn: CallingTurn
    ) {
      const tools = hasTools ? yield* store.list(scope) : []
      const secrets = new Set(Object.values(request.toolCredentials ?? {}).slice(0, maxCredentials))
      const prepared = yield* Effect.forEach(tools, (tool) =>
        Effect.map(credentialOf(tool, request), (credential) => {
          const bound = Bindings.resolve(tool.definition.bindings, request.toolContext)
          if (Either.isRight(credential))
            for (const part of partsOf(tool, credential.right)) secrets.add(part)
          for (const { value } of Either.getOrElse(bound, () => []))
            for (const leaf of Bindings.leaves(value)) secrets.add(leaf)
          return { tool, credential, bound }
        })
      )
      const scrubber = new Scrubber(secrets)
      const hidden = (failure: Bindings.ToolFailure) => ({
        ...failure,
        message: scrubber.text(failure.message).slice(0, maxFailureCharacters).toWellFormed()
      })
      const callables = new Map<string, Callable>()
      const unavailable: Array<TurnTools["unavailable"][number]> = []
      yield* Effect.forEach(
        prepared,
        ({ tool, credential, bound }) => {
          const { mcp } = tool.definition
          if (mcp === undefined) return Effect.succeed([overHttp(tool, credential, bound)])
          return overMcp(tool, mcp.url, credential, scrubber).pipe(
            Effect.catchAll((failure) =>
              Effect.sync((): ReadonlyArray<Callable> => {
                unavailable.push({ name: tool.name, failure: hidden(failure) })
                return []
              })
            )
          )
        },
        { concurrency: 4 }
      ).pipe(
        Effect.map((all) => {
          for (const callable of all.flat())
            if (!callables.has(callable.declaration.name)) callables.set(callable.declaration.name, callable)
        })
      )

      for (const name of sourceTools) {
        const found = source.get(name)
        if (found === undefined) {
          const failure = Bindings.toolFailure("UNKNOWN_TOOL", "UNKNOWN_TOOL: this process does not offer it")
          unavailable.push({ name, failure })
        } else if (!callables.has(name)) callables.set(name, ofSource(found, turn))
      }

      const call = CheapSpans.fn("ChatTools.call")(function* (
        name: string,
        input: JsonObject | null,
        progress: Progress
      ) {
        const found = callables.get(name)
        const refused = (code: Bindings.ToolFailure["code"], message: string) =>
          Effect.fail(Bindings.toolFailure(code, `${code}: ${message}`))
        if (found === undefined) return yield* refused("UNKNOWN_TOOL", "there is no tool of this name")
        if (input === null) return yield* refused("INVALID_ARGUMENTS", "expected a JSON object")
        const wrong = Arguments.complaints(found.declaration.parameters, input)
        if (wrong.length > 0) return yield* refused("INVALID_ARGUMENTS", wrong.join("; "))
        return scrubber.json(yield* found.call(input, progress))
      }, Effect.mapError(hidden))

      const turnTools: TurnTools = {
        declarations: [...callables.values()].map(({ declaration }) => ({
          ...declaration,
          description: scrubber.text(declaration.description)
        })),
        unavailable,
        call,
        scrubber,
        isRecorded: false
      }
      return turnTools
    })

    return { forTurn } as const
  })
}) {}
