/**
 * Logging: one JSON object per line for machines, readable lines on a terminal.
 */
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FiberRef from "effect/FiberRef"
import * as FiberRefs from "effect/FiberRefs"
import * as HashMap from "effect/HashMap"
import * as Layer from "effect/Layer"
import * as List from "effect/List"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import * as AccessLog from "../../http/server/AccessLog.ts"
import { withoutControls } from "../../domain/Text.ts"
import { sqlStateOf } from "../../store/Database.ts"
import type { Settings } from "../config/Config.ts"
import * as Telemetry from "./Telemetry.ts"
import { causeField, messageText } from "./LogEntry.ts"

const levels: Record<Settings["logLevel"], LogLevel.LogLevel> = {
  trace: LogLevel.Trace,
  debug: LogLevel.Debug,
  info: LogLevel.Info,
  warning: LogLevel.Warning,
  error: LogLevel.Error,
  none: LogLevel.None
}

/** Ids of the current span, which connect log lines and traces. */
const traceField = (refs: FiberRefs.FiberRefs) =>
  Option.match(Context.getOption(FiberRefs.getOrDefault(refs, FiberRef.currentContext), Tracer.ParentSpan), {
    onNone: () => ({}),
    // Without tracing a span has no id of its own.
    onSome: ({ traceId }) => (traceId === "noop" ? {} : { traceId })
  })

/** The SQLSTATE of the failure, as a field to search by. */
const sqlStateField = (cause: Cause.Cause<unknown>) => {
  const states = Chunk.filterMap(Chunk.appendAll(Cause.failures(cause), Cause.defects(cause)), (thrown) =>
    Option.fromNullable(sqlStateOf(thrown))
  )
  return Option.match(Chunk.head(states), { onNone: () => ({}), onSome: (sqlState) => ({ sqlState }) })
}

const entryOf = ({
  annotations,
  cause,
  context,
  date,
  logLevel,
  message,
  spans
}: Logger.Logger.Options<unknown>) => ({
  timestamp: date.toISOString(),
  level: logLevel.label.toLowerCase(),
  message: messageText(message),
  ...Object.fromEntries(HashMap.toEntries(annotations)),
  ...traceField(context),
  ...(List.isNil(spans) ? {} : { spans: List.toArray(spans).map(({ label }) => label) }),
  ...sqlStateField(cause),
  ...causeField(cause)
})

const colors: Readonly<Record<string, number>> = { error: 31, fatal: 31, warn: 33, debug: 90, trace: 90 }

const pretty = (options: Logger.Logger.Options<unknown>): string => {
  const { cause, level, message, timestamp, spans: _, ...annotations } = entryOf(options)
  const details = Object.entries(annotations).map(([name, value]) => `${name}=${messageText(value)}`)
  const text = [[message, ...details].join(" "), ...(cause === undefined ? [] : [cause])].join("\n")
  // Parts of it may come from outside: they neither control the terminal nor look like a line of their own.
  const shown = withoutControls(text).replaceAll("\n", "\n  ")
  return `${timestamp.slice(11, 19)} \u001b[${colors[level] ?? 36}m${level.padEnd(5)}\u001b[0m ${shown}`
}

// Standard output is for the results of commands; log lines go to standard error.
const write = (line: string) => {
  process.stderr.write(`${line}\n`)
}

const jsonLogger = Logger.make<unknown, void>((options) => write(JSON.stringify(entryOf(options))))
const prettyLogger = Logger.make<unknown, void>((options) => write(pretty(options)))

export const layer = ({
  accessLog,
  logFormat,
  logLevel,
  telemetry
}: Pick<Settings, "accessLog" | "logFormat" | "logLevel" | "telemetry">) =>
  Layer.mergeAll(
    Layer.scopedDiscard(Effect.locallyScoped(AccessLog.enabled, accessLog)),
    Telemetry.layer(telemetry),
    Logger.replace(Logger.defaultLogger, logFormat === "json" ? jsonLogger : prettyLogger),
    Logger.minimumLogLevel(levels[logLevel])
  )
