/** A log line as a value, for hosts with their own logging. */
import * as Cause from "effect/Cause"
import * as HashMap from "effect/HashMap"
import * as Logger from "effect/Logger"
import type { LogEntry } from "../../client/Spoke.ts"

/** Maximum characters of a cause. */
const causeLimit = 4_000

const levels: Readonly<Record<string, LogEntry["level"]>> = {
  TRACE: "trace",
  DEBUG: "debug",
  WARN: "warn",
  ERROR: "error",
  FATAL: "fatal"
}

/** The text of a message of one or several parts. */
export const words = (message: unknown): string =>
  (Array.isArray(message) ? message : [message])
    .map((part: unknown) => (typeof part === "string" ? part : JSON.stringify(part)))
    .join(" ")

/** Passes every line to `take`. */
export const logger = (take: (entry: LogEntry) => void) =>
  Logger.make<unknown, void>(({ annotations, cause, date, logLevel, message }) =>
    take({
      timestamp: date,
      level: levels[logLevel.label] ?? "info",
      message: words(message),
      annotations: Object.fromEntries(HashMap.toEntries(annotations)),
      ...(Cause.isEmpty(cause) ? {} : { cause: Cause.pretty(cause).slice(0, causeLimit) })
    })
  )
