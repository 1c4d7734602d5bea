/** The pause that a provider asks for in `retry-after` (RFC 9110) or OpenAI's `retry-after-ms`. */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"

/** A longer pause is treated as an outage. */
export const maxRetryAfter = Duration.hours(1)

const decimal = /^\d{1,9}(?:\.\d{1,9})?$/

const millisecondsOf = (headers: Readonly<Record<string, string | undefined>>, now: number): number => {
  const milliseconds = headers["retry-after-ms"]?.trim() ?? ""
  if (decimal.test(milliseconds)) return Number(milliseconds)
  const secondsOrDate = headers["retry-after"]?.trim() ?? ""
  return decimal.test(secondsOrDate) ? Number(secondsOrDate) * 1_000 : Date.parse(secondsOrDate) - now
}

/** `headers` have lower-case names; `now` is in milliseconds. None when there is no header or its value is invalid. */
export const retryAfter = (
  headers: Readonly<Record<string, string | undefined>>,
  now: number
): Option.Option<Duration.Duration> => {
  const pause = millisecondsOf(headers, now)
  if (Number.isNaN(pause)) return Option.none()
  return Option.some(Duration.min(Duration.millis(Math.max(0, pause)), maxRetryAfter))
}
