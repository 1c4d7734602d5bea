/**
 * Builds the search text of a message. "And how long?" finds nothing by itself, so a follow-up is searched together
 * with the question before it. No model is called for this: it would add a second wait to the turn.
 */
import { isForeignWord, isFunctionWord, isVague, wordSet } from "../../search/FunctionWords.ts"
import { terms, withoutJoiners, word } from "../../search/Tokenizer.ts"
import type { HistoryMessage } from "../../store/chat/Turns.ts"

/** A message with at least this many content words is searched alone, unless it refers back. */
const minOwnWords = 4
/** A word this long counts as two in languages that write compounds as one word. */
const minCompoundCharacters = 12
/** Longest message, in characters, that is combined with the question before it. */
const maxFollowUpCharacters = 1_000
/** Maximum characters of the previous question in the search text. */
const maxContextCharacters = 300

/** English words that refer to something said before. */
const englishReferences =
  /^(?:and|or|but|so|then|also|what about|how about|why|which one|really)\b|\b(?:it|its|they|them|their|that|this|those|these|one|ones|there|he|she|him|her|same|else|again)\b/iu

/** Words of other languages that continue a conversation, at the beginning of a message. */
const continuationWords = wordSet(`
  und oder aber also dann auch warum wieso wirklich en of maar dus ook waarom och eller men alltså också og også
  et ou mais donc alors aussi pourquoi vraiment y o pero entonces también e então mas também ma allora quindi anche perché
  a i ale więc też dlaczego nebo tak proč taky ve ama peki ya neden
  а и но или тогда тоже также почему і але або тоді також чому και ή αλλά τότε επίσης γιατί
  و أو لكن إذن لماذا או אבל אז גם למה और या लेकिन तो क्यों`)

/** Words of other languages that refer to something said before. Those that are also articles are left out. */
const referringWords = wordSet(`
  davon dafür damit dabei darauf dazu daran dort denen dasselbe derselbe dieselbe dieses jenes
  daarvan daarvoor daarmee ervan ervoor ermee hetzelfde detta dessa där samma dette disse samme
  ça cela ceci celui celle ceux celles lequel laquelle eso esto aquello ello ella ellos ese esa allí ahí mismo misma
  isso isto aquilo ele ela eles elas dele dela lá mesmo ciò quello quella questo questa lì stesso stessa
  tego tym tam jego jej ich tamto toho tomu jeho jejich bu bunu bunun şu onu onun onlar orada
  это этого этому этим там их его её ней ним такой такая це цього цьому їх його її αυτό αυτή αυτά εκεί
  هذا هذه ذلك تلك هناك זה זאת זו שם אותו یہ وہ یہ इसे इसका इसमें वहाँ उसका`)

/** The same for scripts without spaces between words. */
const unspacedReferences =
  /那|它|这|這|呢|其|此|还有|還有|それ|これ|あれ|その|この|あの|そこ|では|じゃあ|그럼|그리고|그런데|그거|그것|이거|거기|นั่น|นี่|แล้ว|มัน/u

const refersBack = (message: string, isForeign: boolean): boolean => {
  if (!isForeign) return englishReferences.test(message)
  const [first = "", ...rest] = message.toLowerCase().match(word) ?? []
  return (
    continuationWords.has(first) ||
    [first, ...rest].some((found) => referringWords.has(found)) ||
    unspacedReferences.test(message)
  )
}

/** Function words of other languages, except those that are also English words. */
const isForeignFunctionWord = (found: string): boolean =>
  isForeignWord(found) || (!/^[a-z]+$/u.test(found) && isFunctionWord(found))

const withoutForeignFunctionWords = (message: string): string =>
  message.replace(word, (found) => (isForeignFunctionWord(found.toLowerCase()) ? " " : found))

const unspacedScript =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u
const segmenter = new Intl.Segmenter("en", { granularity: "word" })
/** Words in hiragana alone are mostly grammatical in Japanese. */
const isHiragana = (found: string): boolean => /^\p{Script=Hiragana}+$/u.test(found)

/** Content words of a text in a script without spaces. */
const segmentedWords = (message: string): ReadonlyArray<string> =>
  Array.from(segmenter.segment(message)).flatMap(({ isWordLike, segment }) =>
    isWordLike === true && !isVague(segment) && !isHiragana(segment) && !isFunctionWord(segment)
      ? [segment]
      : []
  )

const isFollowUp = (message: string): boolean => {
  // A longer message has enough words for a search.
  if (message.length > maxFollowUpCharacters) return false
  const isSegmented = unspacedScript.test(message)
  const rest = withoutForeignFunctionWords(message)
  const isForeign = isSegmented || rest !== message
  const own = new Set(isSegmented ? segmentedWords(message) : terms(rest))
  // English writes compounds as separate words, so long words do not count twice there.
  const compounds = isForeign ? [...own].filter(({ length }) => length >= minCompoundCharacters).length : 0
  const count = own.size + compounds
  return count < minOwnWords || (count < minOwnWords * 2 && refersBack(message, isForeign))
}

/** The text to search for: the message, with the user's last question after it if the message is a follow-up. */
export const searchText = (message: string, history: ReadonlyArray<HistoryMessage>): string => {
  const before = history.findLast(({ role }) => role === "user")
  if (before === undefined || !isFollowUp(withoutJoiners(message))) return message
  return `${message}\n${before.content.slice(0, maxContextCharacters).toWellFormed()}`
}
