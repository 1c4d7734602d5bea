/** The library: opens the service with a promise API. Failures are rejections with a `SpokeError`. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import * as Embedded from "./Embedded.ts"
import * as AiSdk from "../../capabilities/ModelRuntime/AiSdk.ts"
import * as InProcess from "../../capabilities/ToolSources/InProcess.ts"
import { OtherChannels } from "../../capabilities/ChannelAdapters.ts"
import { hostChannel } from "../../channels/HostAdapter.ts"
import { hostReader } from "../../readers/connectors/HostReader.ts"
import * as Registered from "../../readers/connectors/Registered.ts"
import * as LibrarySettings from "./LibrarySettings.ts"
import * as LogEntry from "../telemetry/LogEntry.ts"
import type { Replaceable } from "./Replaceable.ts"
import type { Database } from "../../store/Database.ts"
import { ServiceUnavailable } from "../../domain/Errors.ts"
import { isError } from "../../domain/ThrownErrors.ts"
import { failureBody, isCoded } from "../../http/Envelope.ts"
import * as RequestId from "../../http/server/RequestId.ts"
import * as AgentClient from "../../client/AgentClient.ts"
import { SpokeError, type SpokeErrorCode } from "../../client/Failure.ts"
import * as OwnerClient from "../../client/OwnerClient.ts"
import type { AgentChat, Spoke, SpokeSettings } from "../../client/Spoke.ts"
import type { StandardInput } from "../../client/StandardSchema.ts"
import type {
  Chat,
  ChatRequest,
  ChatResult,
  IdempotentOptions,
  StructuredRequest,
  StructuredResult
} from "../../client/Chat.ts"
import { type EffectInput, standard } from "../../client/Tool.ts"
import * as Transport from "../../client/Transport.ts"

const codes: Readonly<Record<string, SpokeErrorCode>> = {
  DataDirectoryLocked: "DATA_DIRECTORY_IN_USE",
  DataDirectoryUnusable: "DATA_DIRECTORY_UNUSABLE",
  DataDirectoryError: "DATA_DIRECTORY_UNUSABLE",
  DatabaseUnavailable: "DATABASE_UNAVAILABLE",
  VectorUnavailable: "DATABASE_UNAVAILABLE",
  IsolationUnavailable: "DATABASE_UNAVAILABLE",
  MigrationError: "DATABASE_UNAVAILABLE",
  SqlError: "DATABASE_UNAVAILABLE",
  MasterSecretError: "INVALID_CONFIG",
  PackageMissing: "INVALID_CONFIG",
  InvalidReplacement: "INVALID_CONFIG"
}

const errorOf = (cause: Cause.Cause<unknown>): SpokeError => {
  const failure = Cause.squash(cause)
  if (failure instanceof SpokeError) return failure
  if (isCoded(failure)) {
    return new SpokeError({ code: failure._tag, message: failure.message, details: failure.details })
  }
  const code = isError(failure) && "_tag" in failure ? codes[String(failure._tag)] : undefined
  return code !== undefined && isError(failure)
    ? new SpokeError({ code, message: failure.message })
    : new SpokeError({ code: "INTERNAL_ERROR", message: "Something went wrong on our side.", cause: failure })
}

const valueOf = <A>(exit: Exit.Exit<A, unknown>): A => {
  if (Exit.isSuccess(exit)) return exit.value
  throw errorOf(exit.cause)
}

/** Time for calls to be answered when the library closes. */
const closeTimeout = "30 seconds"

const closedResponse = ({ headers }: Request) =>
  Effect.map(RequestId.resolve(headers.get(RequestId.header) ?? undefined), (requestId) => {
    const error = new ServiceUnavailable({ message: "The server is stopping. Try again." })
    return Response.json(failureBody(error, requestId), {
      status: 503,
      headers: { [RequestId.header]: requestId }
    })
  })

/** Passes all log lines to `log`; without it nothing is logged. */
const logLayer = ({ log }: SpokeSettings) =>
  log === undefined
    ? Logger.remove(Logger.defaultLogger)
    : Logger.replace(Logger.defaultLogger, LogEntry.logger(log))

/** Capabilities that a host may replace. */
export type Replacements<A extends Replaceable> = Embedded.Replacement<A, unknown, Database>

/** Empty without tools, so that a host can provide its own `OtherToolSources`. */
const toolLayer = (tools: NonNullable<SpokeSettings["tools"]>) =>
  Object.keys(tools).length === 0 ? Layer.empty : InProcess.layerInProcess(tools)

/** Empty without readers, so that a host can provide its own `SourceReaders`. */
const readerLayer = (readers: NonNullable<SpokeSettings["readers"]>) =>
  Object.keys(readers).length === 0
    ? Layer.empty
    : Registered.layerWith(Object.entries(readers).map(([name, given]) => hostReader(name, given)))

/** Empty without channels, so that a host can provide its own `OtherChannels`. */
const channelLayer = (channels: NonNullable<SpokeSettings["channels"]>) =>
  Object.keys(channels).length === 0
    ? Layer.empty
    : Layer.succeed(
        OtherChannels,
        Object.entries(channels).map(([name, given]) => hostChannel(name, given))
      )

const invalid = (issues: ReadonlyArray<{ readonly message: string }>) =>
  new SpokeError({
    code: "INVALID_CONFIG",
    message: `Invalid settings: ${issues.map(({ message }) => message).join("; ")}`,
    details: { issues }
  })

const openService = <A extends Replaceable>(all: SpokeSettings, replacements: Replacements<A>) =>
  Effect.gen(function* () {
    const { channels = {}, model, readers = {}, tenant, tools = {}, workers, ...given } = all
    const settings = yield* Effect.mapError(LibrarySettings.read(given), invalid)
    const replace = Layer.mergeAll(
      replacements.replace ?? Layer.empty,
      toolLayer(tools),
      readerLayer(readers),
      model === undefined ? Layer.empty : AiSdk.layerAiSdk(model),
      channelLayer(channels)
    )
    return yield* Embedded.open(settings, { tenant, workers }, Embedded.layer(settings, { replace }))
  })

/** Opens the service, and creates or migrates its database. Rejects with a {@link SpokeError}. */
export const createSpoke = async <A extends Replaceable = never>(
  settings: SpokeSettings = {},
  replacements: Replacements<A> = {}
): Promise<Spoke> => {
  const problems = LibrarySettings.problems(settings)
  if (problems.length > 0) throw invalid(problems)
  const logged = logLayer(settings)
  const run: Run = async (effect, options) =>
    valueOf(await Effect.runPromiseExit(Effect.provide(effect, logged), options))
  const scope = await run(Scope.make())
  const closeScope = () => run(Scope.close(scope, Exit.void))
  try {
    return makeSpoke(await run(Scope.extend(openService(settings, replacements), scope)), run, closeScope)
  } catch (cause) {
    await closeScope()
    throw cause
  }
}

/** `chat` that also accepts Effect Schemas; the browser client does not. */
const withEffectSchemas = (chat: Chat): AgentChat => {
  function chatAny<A>(
    request: StructuredRequest<EffectInput<A> | StandardInput<A>>,
    options?: IdempotentOptions
  ): Promise<StructuredResult<A>>
  function chatAny(request: ChatRequest, options?: IdempotentOptions): Promise<ChatResult>
  function chatAny<A>(
    request: StructuredRequest<EffectInput<A> | StandardInput<A>> | ChatRequest,
    options?: IdempotentOptions
  ): Promise<StructuredResult<A> | ChatResult> {
    return hasSchema(request)
      ? chat({ ...request, responseSchema: standard(request.responseSchema) }, options)
      : chat(request, options)
  }
  return chatAny
}

const hasSchema = <A>(
  request: StructuredRequest<EffectInput<A> | StandardInput<A>> | ChatRequest
): request is StructuredRequest<EffectInput<A> | StandardInput<A>> =>
  request.responseSchema !== undefined &&
  (Schema.isSchema(request.responseSchema) || "~standard" in request.responseSchema)

type Run = <A>(effect: Effect.Effect<A, unknown>, options?: { readonly signal: AbortSignal }) => Promise<A>

const makeSpoke = (embedded: Embedded.Embedded, run: Run, closeScope: () => Promise<void>): Spoke => {
  const pending = new Set<Promise<unknown>>()
  let closing: Promise<void> | undefined

  /** Kept until it settles, because closing waits for it. */
  const tracked = <A>(answer: Promise<A>): Promise<A> => {
    const settled: Promise<unknown> = answer.catch(() => undefined).finally(() => pending.delete(settled))
    pending.add(settled)
    return answer
  }

  const pendingAnswers = Effect.timeoutOption(
    Effect.promise(() => Promise.all(pending)),
    closeTimeout
  )

  const close = () =>
    (closing ??= (async () => {
      await run(Effect.all([embedded.drain, pendingAnswers], { concurrency: "unbounded" }))
      await closeScope()
    })())

  const unlessClosed =
    (send: Transport.Send): Transport.Send =>
    async (request) => {
      if (closing !== undefined) throw Embedded.closed()
      const response = await tracked(send(request))
      // The request could not be answered before the library closed.
      if (response.status === 503 && closing !== undefined) throw Embedded.closed()
      return response
    }

  const owner = unlessClosed((request) => embedded.own(request, null))

  const asAgent = (id: string) =>
    unlessClosed(async (request) => embedded.own(request, await run(embedded.agent(id), request)))

  const origin = "http://spoke.internal"
  const { agents, channelsOf, keysOf } = OwnerClient.make(Transport.make(origin, owner))
  return {
    agents,
    agent: (id) => {
      const client = AgentClient.make(Transport.make(origin, asAgent(id)))
      return {
        ...client,
        chat: withEffectSchemas(client.chat),
        id,
        keys: keysOf(id),
        channels: channelsOf(id)
      }
    },
    fetch: (request, options) =>
      closing === undefined
        ? tracked(embedded.network(request, options?.clientAddress))
        : run(closedResponse(request)),
    close,
    [Symbol.asyncDispose]: close
  }
}
