/**
 * robots.txt (RFC 9309): groups by user agent, the longest matching rule decides, allow wins a tie, `*` and a final `$`
 * in paths; also the common `crawl-delay` and `sitemap` lines. The package `robots-parser` is not used: its time for a
 * rule grows with the length of the rule times that of the path, without a limit, and a site controls both. Also the
 * rules of a page about itself.
 */
import { WorkBudget } from "../concurrency/WorkBudget.ts"
import { compilePattern, matchesPattern, normalized, type Pattern } from "./Glob.ts"

interface Rule {
  readonly allow: boolean
  /** Length of the whole pattern. The longest match decides. */
  readonly length: number
  /** A prefix of paths, or a pattern for the whole path. */
  readonly path: string | Pattern
}
interface Group {
  readonly agents: Array<string>
  readonly rules: Array<Rule>
  delay: number | undefined
}

export interface Robots {
  readonly groups: ReadonlyArray<Group>
  readonly sitemaps: ReadonlyArray<string>
}

/** A delay in seconds, as written. */
const seconds = /^\d{0,9}\.?\d{1,9}$/

/** RFC 9309 requires to read at least 500 KiB. */
const maxLength = 512 * 1024

export const allowAll: Robots = { groups: [], sitemaps: [] }

/** A rule without special characters is a prefix. */
const ruleOf = (allow: boolean, path: string): Rule => {
  const { length } = path
  if (path.endsWith("$")) return { allow, length, path: compilePattern(path.slice(0, -1), null) }
  return { allow, length, path: path.includes("*") ? compilePattern(`${path}*`, null) : path }
}

const lineOf = (line: string): { readonly field: string; readonly value: string } | undefined => {
  const comment = line.indexOf("#")
  const text = comment === -1 ? line : line.slice(0, comment)
  const colon = text.indexOf(":")
  if (colon === -1) return undefined
  return { field: text.slice(0, colon).trim().toLowerCase(), value: text.slice(colon + 1).trim() }
}

/** Only the product token: "SpokeBot/1.0" becomes SpokeBot. */
const agentOf = (value: string): string =>
  value === "*" ? "*" : (/^[A-Za-z_-]+/.exec(value)?.[0] ?? value).toLowerCase()

/** Lenient: unknown lines are ignored. */
export const parseRobots = (text: string): Robots => {
  const groups: Array<Group> = []
  const sitemaps: Array<string> = []
  let open: Group | undefined
  let isNaming = false
  for (const raw of text
    .slice(0, maxLength)
    .replace(/^\uFEFF/, "")
    .split(/\r\n|\n|\r/)) {
    const line = lineOf(raw)
    if (line === undefined) continue
    const { field, value } = line
    if (field === "user-agent") {
      if (open === undefined || !isNaming) {
        open = { agents: [], rules: [], delay: undefined }
        groups.push(open)
      }
      open.agents.push(agentOf(value))
      isNaming = true
    } else if (field === "sitemap") sitemaps.push(value)
    else if (field === "allow" || field === "disallow") {
      isNaming = false
      // An empty rule matches nothing.
      if (value !== "") open?.rules.push(ruleOf(field === "allow", normalized(value)))
    } else if (field === "crawl-delay") {
      isNaming = false
      if (open !== undefined && seconds.test(value)) open.delay = Number(value)
    }
  }
  return { groups, sitemaps }
}

/** The groups of the agent, else those for `*`. Several groups with one name are combined. */
const groupsFor = ({ groups }: Robots, agent: string): ReadonlyArray<Group> => {
  const groupsOfAgent = groups.filter(({ agents }) => agents.includes(agent.toLowerCase()))
  return groupsOfAgent.length > 0 ? groupsOfAgent : groups.filter(({ agents }) => agents.includes("*"))
}

const matchesRule = (path: string, rule: Rule, budget: WorkBudget): boolean =>
  typeof rule.path === "string" ? path.startsWith(rule.path) : matchesPattern(rule.path, path, budget)

/** Steps per character of a path, enough for thousands of rules with stars. */
const stepsPerCharacter = 2_048

/**
 * True when `agent` may fetch `url`, an absolute URL of the host of this robots.txt. If the host has so many patterns
 * that the step limit is reached, the URL is not allowed.
 */
export const mayFetch = (robots: Robots, agent: string, url: string): boolean => {
  const { pathname, search } = new URL(url)
  const path = normalized(pathname + search)
  if (path === "/robots.txt") return true
  const budget = new WorkBudget()
  budget.allow((path.length + 1) * stepsPerCharacter)
  let best = { allow: true, length: 0 }
  for (const rule of groupsFor(robots, agent).flatMap(({ rules }) => rules)) {
    const isStronger = rule.length > best.length || (rule.length === best.length && rule.allow)
    if (isStronger && matchesRule(path, rule, budget)) best = rule
    if (budget.isSpent) return false
  }
  return best.allow
}

/** Number of seconds that `agent` should wait between two requests. */
export const crawlDelay = (robots: Robots, agent: string): number =>
  groupsFor(robots, agent).reduce((max, { delay = 0 }) => Math.max(max, delay), 0)

export interface PageRules {
  readonly noindex: boolean
  readonly nofollow: boolean
}

/** Rules that are written with a colon, as the names of agents are. */
const valuedRules: ReadonlySet<string> = new Set([
  "unavailable_after",
  "max-snippet",
  "max-image-preview",
  "max-video-preview"
])

/** The strictest rules for `agent` in values of `<meta name="robots">` and of the header `x-robots-tag`. */
export const pageRules = (agent: string, values: ReadonlyArray<string>): PageRules => {
  const rules = new Set<string>()
  for (const value of values) {
    let isForAgent = true
    for (const part of value.toLowerCase().split(",")) {
      const colon = part.indexOf(":")
      const name = part.slice(0, Math.max(0, colon)).trim()
      const isAgent = name !== "" && !valuedRules.has(name)
      // An agent's name is for all rules up to the next one.
      if (isAgent) isForAgent = name === agent.toLowerCase()
      if (isForAgent) rules.add((isAgent ? part.slice(colon + 1) : part).trim())
    }
  }
  const isNone = rules.has("none")
  return { noindex: isNone || rules.has("noindex"), nofollow: isNone || rules.has("nofollow") }
}
