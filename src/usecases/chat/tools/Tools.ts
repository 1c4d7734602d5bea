/** The tools of one turn: their declarations for the model, and the scrubbed results of their calls. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Option from "effect/Option"
import type { ToolDeclaration } from "../../../capabilities/ModelRuntime.ts"
import { SecretBox } from "../../../capabilities/SecretBox.ts"
import {
  type AgentTool,
  type CallingTurn,
  type Progress,
  type SourcedTool,
  type ToolAccess,
  ToolSources
} from "../../../capabilities/ToolSources.ts"
import type { AgentScope } from "../../../domain/accounts/Access.ts"
import type { TenantScope } from "../../../domain/accounts/Account.ts"
import type { ChatTurnRequest } from "../../../domain/chat/ChatTurn.ts"
import { newId } from "../../../domain/Ids.ts"
import type { JsonObject, JsonValue } from "../../../domain/Text.ts"
import * as LongIntegers from "../../../domain/agents/LongIntegers.ts"
import { slotOf } from "../../../domain/agents/Tool.ts"
import { type ToolFailure, toolFailure } from "../../../domain/agents/ToolFailure.ts"
import * as CheapSpans from "../../../concurrency/CheapSpans.ts"
import { type StoredTool, ToolStore } from "../../../store/agents/Tools.ts"
import type { StartedTurn } from "../../../store/chat/Turns.ts"
import { ToolTokens } from "../../agents/ToolTokens.ts"
import * as Arguments from "./Arguments.ts"
import * as Bindings from "./Bindings.ts"
import { declaredSchema } from "./DeclaredSchema.ts"
import { functionNames } from "./FunctionNames.ts"
import { Scrubber } from "./Scrub.ts"

/** Maximum characters of a failure that are shown. Cut after scrubbing, so that no part of a credential remains. */
const maxFailureCharacters = 2_048
/** Maximum characters of a description. */
const maxDescriptionCharacters = 4_000
/** Providers refuse requests with more than 128 functions, of which two are the turn's own. */
const maxFunctions = 126
/** Maximum tool servers that are queried at once. */
const maxConcurrentOpens = 4

/** Values for tools in a chat request. */
type ToolValues = Pick<ChatTurnRequest, "toolContext" | "toolCredentials">

interface MissingTool {
  readonly name: string
  readonly failure: ToolFailure
}

export interface TurnTools {
  readonly declarations: ReadonlyArray<ToolDeclaration>
  /** Tools that could not be offered, with the reason: one entry per tool of the agent. */
  readonly unavailable: ReadonlyArray<MissingTool>
  /** Tools of which some functions are not offered, with the reason. */
  readonly leftOut: ReadonlyArray<MissingTool>
  /** The arguments that a call sends, of those of the model. */
  readonly sent: (name: string, input: JsonObject) => JsonObject
  /** Returns what the model may see of the call: the tool's answer or its failure. */
  readonly call: (
    name: string,
    input: JsonObject | null,
    progress: Progress
  ) => Effect.Effect<JsonValue, ToolFailure>
  readonly scrubber: Scrubber
  /** Tools whose answers have a limit of their own, and must not be cut: the end tag of their data would be missing. */
  readonly uncut?: ReadonlySet<string>
  /** True when calls are answered from a trace. A trace holds no masked personal data. */
  readonly isRecorded: boolean
}

/** Both halves of a basic credential are secret too. */
const secretPartsOf = ({ definition: { auth } }: StoredTool, credential: string): ReadonlyArray<string> =>
  auth.kind === "basic" ? [credential, credential.slice(credential.indexOf(":") + 1)] : [credential]

/**
 * The declaration, with a limited description: a server may send anything. Declarations that the tenant or the host has
 * written are scrubbed of credentials alone: the values of bindings are often numbers and words of schemas, too.
 */
const toDeclaration = (
  { description, name, parameters }: ToolDeclaration,
  scrubber: Scrubber
): ToolDeclaration => ({
  name: scrubber.text(name),
  description: scrubber.text(description).slice(0, maxDescriptionCharacters).toWellFormed(),
  parameters: scrubber.schema(parameters)
})

interface FoundFunction {
  readonly tool: string
  /** False if a server determines how many functions the tool has. */
  readonly isOwn: boolean
  readonly called: SourcedTool
}

const leftOutOf = (
  functions: ReadonlyArray<FoundFunction>,
  reason: (count: number) => string
): ReadonlyArray<MissingTool> => {
  const counts = new Map<string, number>()
  for (const { tool } of functions) counts.set(tool, (counts.get(tool) ?? 0) + 1)
  return Array.from(counts, ([name, count]) => ({ name, failure: toolFailure("TOOL_FAILED", reason(count)) }))
}

/** The functions by the names that a model gets. Functions of servers cannot displace those of other tools. */
const offeredOf = (found: ReadonlyArray<FoundFunction>) => {
  const names = functionNames(found.map(({ called }) => called.declaration.name))
  const distinct = new Map<string, FoundFunction>()
  const duplicates: Array<FoundFunction> = []
  for (const [index, one] of found.entries()) {
    const name = names[index] ?? one.called.declaration.name
    if (distinct.has(name)) duplicates.push(one)
    else distinct.set(name, one)
  }
  const all = [...distinct]
  const ranked = [...all.filter(([, { isOwn }]) => isOwn), ...all.filter(([, { isOwn }]) => !isOwn)]
  const kept = new Set(ranked.slice(0, maxFunctions))
  return {
    callables: new Map(
      all
        .filter((entry) => kept.has(entry))
        .map(([name, { called }]) => {
          const declaration = { ...called.declaration, name }
          return [name, { ...called, declaration }] as const
        })
    ),
    leftOut: [
      ...leftOutOf(duplicates, (count) => `the names of ${count} of its functions are taken`),
      ...leftOutOf(
        ranked.slice(maxFunctions).map(([, one]) => one),
        (count) => `${count} of its functions are above the maximum of ${maxFunctions} in all`
      )
    ]
  }
}

export class ChatTools extends Effect.Service<ChatTools>()("usecases/chat/tools/Tools", {
  effect: Effect.gen(function* () {
    const store = yield* ToolStore
    const sources = yield* ToolSources
    const box = yield* SecretBox
    const tokens = yield* ToolTokens

    const credentialOf = (scope: AgentScope, tool: StoredTool, { toolCredentials = {} }: ToolValues) =>
      Effect.gen(function* () {
        const { auth } = tool.definition
        const slot = slotOf(auth)
        if (auth.kind === "oauth") return yield* Effect.either(tokens.current(scope, tool))
        if (auth.kind === "none") return Either.right("")
        if (slot !== undefined) {
          const given = Object.hasOwn(toolCredentials, slot) ? toolCredentials[slot] : undefined
          return given === undefined || given === ""
            ? Either.left(toolFailure("SESSION_CREDENTIAL_REQUIRED", slot))
            : Either.right(given)
        }
        const opened = tool.secret === null ? Option.none() : yield* box.open("tool-secret", tool.secret)
        return Either.fromOption(opened, () => toolFailure("TOOL_FAILED", "its secret has to be set again"))
      })

    /** The functions of one tool, from the source that provides it. */
    const openTool = (tool: AgentTool, turn: CallingTurn) => {
      const source = sources.find(({ has }) => has(tool))
      return source === undefined
        ? Effect.fail(toolFailure("UNKNOWN_TOOL", "this process does not offer it"))
        : source.open(tool, turn)
    }

    /** The `stored` tools and those of sources by their names, with the request's values for them. */
    const prepareTools = CheapSpans.fn("ChatTools.prepareTools")(function* (
      scope: AgentScope,
      request: ToolValues,
      stored: ReadonlyArray<StoredTool>,
      sourceTools: ReadonlyArray<string>,
      turn: CallingTurn
    ) {
      const credentials = new Set(Object.values(request.toolCredentials ?? {}))
      const boundValues = new Set<string>()
      /** Renewed tokens are scrubbed too. */
      const access = (tool: StoredTool): ToolAccess => ({
        renew: (token) =>
          Effect.tap(tokens.current(scope, tool, token), (fresh) => Effect.sync(() => scrubber.add(fresh))),
        refused: (token) => tokens.refuse(scope, tool, token),
        widened: (token, scopes) =>
          Effect.tap(tokens.widenScopes(scope, tool, token, scopes), (fresh) =>
            Effect.sync(() => scrubber.add(fresh))
          )
      })
      const configured = yield* Effect.forEach(
        stored,
        (tool) =>
          Effect.map(credentialOf(scope, tool, request), (credential): AgentTool => {
            const bound = Bindings.resolve(tool.definition.bindings, request.toolContext)
            if (Either.isRight(credential))
              for (const part of secretPartsOf(tool, credential.right)) credentials.add(part)
            for (const { value } of Either.getOrElse(bound, () => []))
              for (const leaf of Bindings.scalarValues(value)) boundValues.add(leaf)
            const connection = tool.definition.auth.kind === "oauth" ? { connection: access(tool) } : {}
            const { definition, id, name, version } = tool
            return { _tag: "Configured", id, name, version, definition, credential, bound, ...connection }
          }),
        { concurrency: maxConcurrentOpens }
      )
      const scrubber = new Scrubber([...credentials, ...boundValues])
      const credentialScrubber = boundValues.size === 0 ? scrubber : new Scrubber(credentials)
      const scrubFailure = (failure: ToolFailure): ToolFailure => ({
        ...failure,
        message: scrubber.text(failure.message).slice(0, maxFailureCharacters).toWellFormed()
      })
      const named = sourceTools.map((name): AgentTool => ({ _tag: "Named", name }))
      const unavailable: Array<MissingTool> = []
      const all = yield* Effect.forEach(
        [...configured, ...named],
        (tool) => Effect.map(Effect.either(openTool(tool, turn)), (opened) => ({ tool, opened })),
        { concurrency: maxConcurrentOpens }
      )
      const found: Array<FoundFunction> = []
      for (const { opened, tool } of all) {
        if (Either.isLeft(opened)) unavailable.push({ name: tool.name, failure: scrubFailure(opened.left) })
        const isOwn = tool._tag === "Named" || tool.definition.mcp === undefined
        for (const one of Either.getOrElse(opened, () => [])) {
          const declaration = toDeclaration(one.declaration, isOwn ? credentialScrubber : scrubber)
          found.push({ tool: tool.name, isOwn, called: { ...one, declaration } })
        }
      }
      const { callables, leftOut } = offeredOf(found)

      const sent: TurnTools["sent"] = (name, input) => callables.get(name)?.sent?.(input) ?? input
      const call = CheapSpans.fn("ChatTools.call")(function* (
        name: string,
        input: JsonObject | null,
        progress: Progress
      ) {
        const found = callables.get(name)
        const refused = (code: ToolFailure["code"], text: string) => Effect.fail(toolFailure(code, text))
        if (found === undefined) return yield* refused("UNKNOWN_TOOL", "there is no tool of this name")
        if (input === null) return yield* refused("INVALID_ARGUMENTS", "expected a JSON object")
        const { parameters } = found.declaration
        const problems = Arguments.validationProblems(parameters, LongIntegers.toDoubles(parameters, input))
        if (problems.length > 0) return yield* refused("INVALID_ARGUMENTS", problems.join("; "))
        const { timeoutMillis } = found
        const answer = yield* Effect.timeoutFail(found.call(sent(name, input), progress), {
          duration: timeoutMillis,
          onTimeout: () =>
            toolFailure("TOOL_TIMEOUT", `no whole answer within ${timeoutMillis / 1_000} seconds`)
        })
        return scrubber.json(answer)
      }, Effect.mapError(scrubFailure))

      const turnTools: TurnTools = {
        declarations: [...callables.values()].map(({ declaration }) => ({
          ...declaration,
          parameters: declaredSchema(declaration.parameters)
        })),
        unavailable,
        leftOut,
        sent,
        call,
        scrubber,
        isRecorded: false
      }
      return turnTools
    })

    /** The agent's tools, if any. */
    const forTurn = CheapSpans.fn("ChatTools.forTurn")(function* (
      scope: AgentScope,
      request: ToolValues,
      { hasTools, sourceTools }: Pick<StartedTurn, "hasTools" | "sourceTools">,
      turn: CallingTurn
    ) {
      const stored = hasTools ? yield* store.list(scope) : []
      return yield* prepareTools(scope, request, stored, sourceTools, turn)
    })

    /** One tool, outside of a conversation. */
    const forTrial = ({ tenantId }: TenantScope, tool: StoredTool, request: ToolValues) =>
      Effect.gen(function* () {
        const scope = { tenantId, agentId: tool.agentId }
        const turn = { scope, runId: yield* newId.run, conversationId: null, endUserId: null }
        return yield* prepareTools(scope, request, [tool], [], turn)
      })

    return { forTurn, forTrial } as const
  })
}) {}
