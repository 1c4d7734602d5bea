/**
 * A regular expression as it is matched by backtracking, which is how V8 matches them, with its steps counted; and texts made
 * to let it backtrack.
 */
import { type AST, RegExpParser, visitRegExpAST } from "@eslint-community/regexpp"

type Continue = (at: number) => boolean
type Matcher = (at: number, then: Continue) => boolean

/** Step limit: hundreds for each character are already too many. */
const mostSteps = 100_000

class TooMany extends Error {}

/** Larger bounds count as these: what is bounded is linear, and a test of thousands of turns would not be done in time. */
const mostTurns = 4

/** Characters of which each class has some, and the one that none of them should have. */
const pool = Array.from("a1 _-.\tZ\n*#[](){}<>/\\\"'`:;,|=!?&%~^$@+é漢\u0301\u00a0")
const outsider = "\u0001"

interface Compiled {
  readonly match: Matcher
  /** One character or more for each place where the expression may go on. */
  readonly tokens: ReadonlyArray<string>
  /** What leads to each place of each alternative. */
  readonly prefixes: ReadonlyArray<string>
}

class Compiler {
  text = ""
  steps = 0
  readonly #flags: string
  readonly #groups = new Map<AST.CapturingGroup, readonly [from: number, to: number]>()
  readonly tokens = new Set<string>()
  readonly prefixes = new Set<string>()

  constructor(flags: string) {
    this.#flags = flags.replace(/[^iusm]/g, "")
  }

  step(): void {
    if (++this.steps > mostSteps) throw new TooMany()
  }

  #character(raw: string): Matcher {
    const regex = new RegExp(`^(?:${raw})$`, this.#flags.replace("m", ""))
    const known = new Map<string, boolean>()
    return (at, then) => {
      this.step()
      if (at >= this.text.length) return false
      const code = this.#flags.includes("u") ? this.text.codePointAt(at) : this.text.charCodeAt(at)
      const character = this.#flags.includes("u")
        ? String.fromCodePoint(code ?? 0)
        : String.fromCharCode(code ?? 0)
      let fits = known.get(character)
      if (fits === undefined) known.set(character, (fits = regex.test(character)))
      return fits && then(at + character.length)
    }
  }

  /** Texts that the node matches. */
  #sample(node: AST.Element): string {
    switch (node.type) {
      case "Character":
        return String.fromCodePoint(node.value)
      case "CharacterClass":
      case "CharacterSet": {
        const regex = new RegExp(`^(?:${node.raw})$`, this.#flags.replace("m", ""))
        return pool.find((character) => regex.test(character)) ?? "a"
      }
      case "Group":
      case "CapturingGroup":
        return this.#sampleOf(node.alternatives[0]?.elements ?? [])
      case "Quantifier":
        return this.#sample(node.element).repeat(Math.max(1, node.min))
      default:
        return ""
    }
  }

  #sampleOf(elements: ReadonlyArray<AST.Element>): string {
    return elements.map((element) => this.#sample(element)).join("")
  }

  alternatives(all: ReadonlyArray<AST.Alternative>): Matcher {
    const compiled = all.map(({ elements }) => this.#sequence(elements))
    return (at, then) => compiled.some((each) => (this.step(), each(at, then)))
  }

  #sequence(elements: ReadonlyArray<AST.Element>): Matcher {
    elements.forEach((_, place) => this.prefixes.add(this.#sampleOf(elements.slice(0, place + 1))))
    const compiled = elements.map((element) => this.#element(element))
    const from =
      (place: number): Matcher =>
      (at, then) => {
        const next = compiled[place]
        return next === undefined ? then(at) : next(at, (end) => from(place + 1)(end, then))
      }
    return from(0)
  }

  #element(node: AST.Element): Matcher {
    switch (node.type) {
      case "Character":
      case "CharacterClass":
      case "CharacterSet":
        this.tokens.add(this.#sample(node))
        return this.#character(node.raw)
      case "Group":
        return this.alternatives(node.alternatives)
      case "CapturingGroup": {
        const inside = this.alternatives(node.alternatives)
        return (at, then) =>
          inside(at, (end) => {
            this.#groups.set(node, [at, end])
            return then(end)
          })
      }
      case "Quantifier":
        return this.#quantifier(node)
      case "Backreference": {
        const { resolved } = node
        return (at, then) => {
          const [from, to] = Array.isArray(resolved) ? [0, 0] : (this.#groups.get(resolved) ?? [0, 0])
          const text = this.text.slice(from, to)
          this.steps += text.length
          return this.text.startsWith(text, at) && then(at + text.length)
        }
      }
      case "Assertion":
        return this.#assertion(node)
      default:
        throw new Error(`${node.type} is not known here.`)
    }
  }

  #quantifier({ element, greedy, max, min }: AST.Quantifier): Matcher {
    const inside = this.#element(element)
    const maxCount = Number.isFinite(max) ? Math.max(min, Math.min(max, mostTurns)) : max
    const turn =
      (count: number): Matcher =>
      (at, then) => {
        const more = () =>
          count < maxCount && inside(at, (end) => (end !== at || count < min) && turn(count + 1)(end, then))
        const done = () => count >= min && then(at)
        return greedy ? more() || done() : done() || more()
      }
    return turn(0)
  }

  #assertion(node: AST.Assertion): Matcher {
    const multiline = this.#flags.includes("m")
    const isWord = (at: number) => /\w/.test(this.text.charAt(at))
    switch (node.kind) {
      case "start":
        return (at, then) => (at === 0 || (multiline && this.text.charAt(at - 1) === "\n")) && then(at)
      case "end":
        return (at, then) =>
          (at === this.text.length || (multiline && this.text.charAt(at) === "\n")) && then(at)
      case "word":
        return (at, then) => (isWord(at - 1) !== isWord(at)) !== node.negate && then(at)
      case "lookahead": {
        const inside = this.alternatives(node.alternatives)
        return (at, then) => inside(at, () => true) !== node.negate && then(at)
      }
      case "lookbehind": {
        // Of one character, of which there is no more in this project.
        const inside = this.alternatives(node.alternatives)
        return (at, then) => inside(at - 1, (end) => end === at) !== node.negate && then(at)
      }
    }
  }
}

const searched = (compiler: Compiler, match: Matcher, flags: string, text: string): number => {
  compiler.text = text
  compiler.steps = 0
  try {
    for (let at = 0; at <= text.length;) {
      let end = -1
      const found = match(at, (to) => {
        end = to
        return true
      })
      // A global one goes on where it ended, any other is done.
      if (found && !flags.includes("g")) break
      at = found && end > at ? end : at + 1
    }
  } catch (error) {
    if (!(error instanceof TooMany)) throw error
  }
  return compiler.steps
}

const parsed = (source: string, flags: string): AST.Pattern =>
  new RegExpParser().parsePattern(source, 0, source.length, { unicode: flags.includes("u") })

const compile = (source: string, flags: string): Compiled & { readonly steps: (text: string) => number } => {
  const compiler = new Compiler(flags)
  const match = compiler.alternatives(parsed(source, flags).alternatives)
  return {
    match,
    tokens: [...compiler.tokens],
    prefixes: [...compiler.prefixes],
    steps: (text) => searched(compiler, match, flags, text)
  }
}

/** Characters of the texts, each twice those of the one before. */
const lengths = [80, 160, 320] as const
/** Tokens and beginnings that are tried: more of them are alternatives of one kind. */
const mostTried = 10

const isUnbounded = (source: string, flags: string): boolean => {
  let found = false
  visitRegExpAST(parsed(source, flags), {
    onQuantifierEnter: ({ max }) => {
      found ||= !Number.isFinite(max)
    }
  })
  return found
}

/** What `pump` is repeated in, for twice the length more than twice as many steps; null when there is no such text. */
export const attackOn = (source: string, flags: string): string | null => {
  // Bounds are constants.
  if (!isUnbounded(source, flags)) return null
  const { prefixes, steps, tokens } = compile(source, flags)
  const single = [...new Set([" ", outsider, ...tokens])].slice(0, mostTried)
  const some = [...new Set([...single, ...prefixes.slice(0, mostTried)])].filter((text) => text !== "")
  const pumps = new Set([
    ...some,
    ...single.flatMap((one) => some.flatMap((other) => [one + other, other + one]))
  ])
  for (const pump of pumps) {
    for (const begin of new Set(["", ...prefixes.slice(0, mostTried)])) {
      for (const end of ["", outsider]) {
        const text = (length: number) =>
          begin + pump.repeat(Math.max(2, Math.round(length / pump.length))) + end
        const [small, middle, large] = lengths.map((length) => steps(text(length))) as [
          number,
          number,
          number
        ]
        const grows = middle > 2.6 * small + 200 && large > 2.6 * middle + 200
        if (grows || large > mostSteps) return text(0)
      }
    }
  }
  return null
}
