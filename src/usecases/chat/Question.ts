/**
 * What is searched for when a user asks on: "And how long?" finds nothing by itself. A follow-up that leans on what was said
 * is searched together with the question before it. No model is asked: a turn must not wait twice.
 */
import { terms } from "../../search/Tokenizer.ts"
import type { HistoryMessage } from "../../store/chat/Turns.ts"

/** A message with this many words of its own stands by itself, unless it points back. */
const minOwnWords = 4
/** Longest text that is taken from the question before. */
const maxContextCharacters = 300

/** Words that point at something said before. */
const pointing =
  /^(?:and|or|but|so|then|also|what about|how about|why|which one|really)\b|\b(?:it|its|they|them|their|that|this|those|these|one|ones|there|he|she|him|her|same|else|again)\b/iu

const leansOn = (message: string): boolean => {
  const own = new Set(terms(message)).size
  return own < minOwnWords || (own < minOwnWords * 2 && pointing.test(message))
}

/** The text to search for: the message, with the user's last question before it when it cannot stand alone. */
export const searchText = (message: string, history: ReadonlyArray<HistoryMessage>): string => {
  const before = history.findLast(({ role }) => role === "user")
  if (before === undefined || !leansOn(message)) return message
  return `${message}\n${before.content.slice(0, maxContextCharacters).toWellFormed()}`
}
