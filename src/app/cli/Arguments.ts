/** Building blocks of commands: usage, options, and messages for invalid options. */
import { Command, InvalidArgumentError, Option } from "@commander-js/extra-typings"
import type * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { urlOf } from "../../domain/Address.ts"
import type { Services } from "./Services.ts"

/** Receives the effect of the chosen command. */
export type Run = (task: Effect.Effect<void, unknown, Services>) => void

/**
 * A command that shows its help after invalid arguments. `name` has all words after `spoke`. Examples are complete
 * command lines.
 */
export const command = (name: string, description: string, ...examples: ReadonlyArray<string>) =>
  new Command(name.split(" ").at(-1))
    .description(description)
    .exitOverride()
    .showHelpAfterError(`See spoke ${name} --help.`)
    .addHelpText("after", `\nExamples:\n${examples.map((line) => `  ${line}`).join("\n")}`)

const parseNumber =
  (isValid: (value: number) => boolean, expected: string) =>
  (text: string): number => {
    const value = Number(text)
    if (text.trim() === "" || !isValid(value)) throw new InvalidArgumentError(`It takes ${expected}.`)
    return value
  }

/** Parses an integer from `min` to `max`. */
export const wholeNumber = (min: number, max: number) =>
  parseNumber(
    (value) => Number.isInteger(value) && value >= min && value <= max,
    `a whole number from ${min} to ${max}`
  )

/** Parses a number from 0 to 1. */
export const share = parseNumber((value) => value >= 0 && value <= 1, "a number from 0 to 1")

/** Parses one of a list of words. */
export const oneOf =
  <Word extends string>(words: ReadonlyArray<Word>) =>
  (text: string): Word => {
    const found = words.find((word) => word === text)
    if (found === undefined) throw new InvalidArgumentError(`It takes one of ${words.join(", ")}.`)
    return found
  }

/** Collects the values of a repeatable option. */
export const repeated = (value: string, before: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...before,
  value
]

/** Parses an address. An empty variable counts as unset. */
export const address = (text: string): string => {
  if (text !== "" && !/^https?:$/u.test(urlOf(text)?.protocol ?? ""))
    throw new InvalidArgumentError("It takes an address with http:// or https://.")
  return text
}

const secret = (text: string) => Redacted.make(text)

export const url = new Option("--url <address>", "server to talk to, like http://127.0.0.1:3000")
  .env("SPOKE_URL")
  .argParser(address)
export const key = new Option("--key <key>", "an agent's API key").env("SPOKE_API_KEY").argParser(secret)
export const keyFile = new Option(
  "--key-file <file>",
  "file with the key, which the list of processes never shows"
)
export const token = new Option("--token <token>", "an access token of the dashboard")
  .env("SPOKE_TOKEN")
  .argParser(secret)
export const tokenFile = new Option("--token-file <file>", "file with the access token")
export const operatorToken = new Option("--operator-token <token>", "the operator's token")
  .env("SPOKE_OPERATOR_TOKEN")
  .argParser(secret)
export const operatorTokenFile = new Option("--operator-token-file <file>", "file with the operator's token")
export const json = new Option("--json", "print the whole answer as JSON")

/** The number of connections that read at the same time. */
export const streams = () =>
  new Option("--streams <count>", "connections that read rows at the same time; an embedded database has one")
    .argParser(wholeNumber(1, 32))
    .default(4)
