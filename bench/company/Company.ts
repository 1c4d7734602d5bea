/**
 * Generates a company from a seed: pages about its products, questions of customers, and planted problems: questions
 * that no page answers, pages that contradict or repeat others, and old pages that do not help.
 */

export interface CompanySize {
  readonly pages: number
  readonly conversations: number
  readonly gaps: number
  readonly contradictions: number
  readonly duplicates: number
  readonly stale: number
}

export const wholeCompany: CompanySize = {
  pages: 300,
  conversations: 2_000,
  gaps: 40,
  contradictions: 25,
  duplicates: 15,
  stale: 30
}

export interface Page {
  readonly name: string
  readonly text: string
  readonly daysOld: number
}

/** A question and the rating of its reply. */
export interface Asking {
  readonly question: string
  readonly person: string
  readonly rating: 1 | -1 | null
  /** The index of its gap. */
  readonly gap: number | null
}

export interface Gap {
  /** Asked in the conversations. */
  readonly wordings: ReadonlyArray<string>
  /** Never asked before the corrections. */
  readonly held: ReadonlyArray<string>
  readonly answer: string
  /** A fact in the answer. */
  readonly fact: string
}

export interface Expected {
  readonly question: string
  readonly fact: string
}

export interface Company {
  readonly pages: ReadonlyArray<Page>
  readonly askings: ReadonlyArray<Asking>
  readonly gaps: ReadonlyArray<Gap>
  /** Names of two pages each. */
  readonly contradictions: ReadonlyArray<readonly [string, string]>
  readonly duplicates: ReadonlyArray<readonly [string, string]>
  readonly stale: ReadonlyArray<string>
  /** Questions that the pages answer, and that corrections must not break. */
  readonly known: ReadonlyArray<Expected>
}

/** Random numbers from 0 to 1, deterministic for a seed. */
const random = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let value = Math.imul(state ^ (state >>> 15), state | 1)
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61)
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296
  }
}

const splitWords = (words: string): ReadonlyArray<string> => words.split(" ")

const materials = splitWords(
  "brass oak copper linen granite willow amber bamboo cobalt velvet marble walnut pewter cedar slate cotton bronze ivory birch enamel"
)
const things = splitWords(
  "kettle ladder lantern hammock teapot compass basket mirror clock stool candle bucket trolley umbrella flute chest saddle canoe pillow bellows"
)
const places = splitWords("Harbourgate Millfield Northquay Oldbridge Rookery Southwell Tanyard Westcliff")
const months = splitWords("January February March April June July September October")
const days = splitWords("Monday Tuesday Wednesday Thursday Friday Saturday")

interface Template {
  readonly question: (name: string) => string
  readonly statement: (name: string, value: string) => string
  /** The same question in other words. */
  readonly restated: (name: string, value: string) => string
  readonly values: ReadonlyArray<string>
}

const numbers = (from: number, step: number): ReadonlyArray<string> =>
  Array.from({ length: 12 }, (_, place) => `${from + place * step}`)

const templates: ReadonlyArray<Template> = [
  {
    question: (name) => `How much does the ${name} weigh?`,
    statement: (name, value) => `The ${name} weighs ${value} kilograms without its packaging.`,
    restated: (name, value) => `Without its packaging the ${name} weighs ${value} kilograms.`,
    values: numbers(2, 3)
  },
  {
    question: (name) => `For how many years are spare parts of the ${name} in stock?`,
    statement: (name, value) => `Spare parts of the ${name} stay in stock for ${value} years.`,
    restated: (name, value) => `All spare parts of the ${name} stay in stock for ${value} years.`,
    values: numbers(3, 2)
  },
  {
    question: (name) => `On which day is the ${name} repaired?`,
    statement: (name, value) => `The workshop repairs the ${name} every ${value}.`,
    restated: (name, value) => `Every ${value} the workshop repairs the ${name}.`,
    values: days
  },
  {
    question: (name) => `In which month does the ${name} arrive from the maker?`,
    statement: (name, value) => `The ${name} arrives from its maker in ${value} each year.`,
    restated: (name, value) => `Each year the ${name} arrives from its maker in ${value}.`,
    values: months
  }
]

const outdoorsRule = {
  allowed: (name: string) => `The ${name} may stand outdoors in winter.`,
  forbidden: (name: string) => `The ${name} may not stand outdoors in winter.`
}

const services = (
  "bicycle parking|gift vouchers|school excursions|wheelchair access|engraving service|night deliveries|student discounts|" +
  "museum membership|dog boarding|wedding catering|piano lessons|telescope rental|pottery workshops|greenhouse tours|" +
  "insurance certificates|newsletter archive|photo permission|lost property|coffee subscription|firewood storage|" +
  "chimney inspection|translation assistance|vaccination records|swimming timetable|language exchange|bridge tournament|" +
  "choir rehearsal|harvest festival|invoice copies|password recovery|crypto payments|import duties|solar panels|" +
  "beehive adoption|chess evenings|marathon registration|opera tickets|glacier hikes|yoga retreats|snow shovelling|" +
  "rooftop terrace|barber appointments"
).split("|")

const wordingsOf = (service: string): ReadonlyArray<string> => [
  `Do you offer ${service}?`,
  `Who do I ask about ${service}?`,
  `Is there any ${service} at your place?`,
  `I am looking for ${service}, can you help?`,
  `Tell me something about ${service}`,
  `What about ${service}?`
]

/** Number of questions about each gap: a fifth of the conversations. */
const gapShare = 0.2

/** The same company for the same size and seed. */
export const makeCompany = (size: CompanySize, seed = 20): Company => {
  const next = random(seed)
  const pick = <A>(from: ReadonlyArray<A>): A => {
    const found = from[Math.floor(next() * from.length)]
    if (found === undefined) throw new Error("Nothing to pick from.")
    return found
  }
  const pickOther = <A>(from: ReadonlyArray<A>, than: A): A => pick(from.filter((one) => one !== than))
  const names = materials.flatMap((material) => things.map((thing) => `${material} ${thing}`))
  const contradictingAndCopied = size.contradictions + size.duplicates
  const productCount = size.pages - contradictingAndCopied
  if (productCount > names.length || contradictingAndCopied + size.stale * 2 > productCount)
    throw new Error("There are not enough things.")
  const chosen = Array.from(
    { length: productCount },
    () => names.splice(Math.floor(next() * names.length), 1)[0] ?? ""
  )
  const pages: Array<Page> = []
  const known: Array<Expected> = []
  const productQuestions: Array<string> = []
  const facts = chosen.map((name) => templates.map(({ values }) => ({ name, value: pick(values) })))
  const textOf = (name: string, values: ReadonlyArray<string>) =>
    [
      ...templates.map(({ statement }, place) => statement(name, values[place] ?? "")),
      outdoorsRule.allowed(name),
      `It is made at ${pick(places)} by people who know the ${name} well.`
    ].join(" ")
  // The last pages are old: first those that do not help, then those that do.
  const firstOld = productCount - size.stale * 2
  for (const [place, name] of chosen.entries()) {
    const values = (facts[place] ?? []).map(({ value }) => value)
    const daysOld = place >= firstOld ? 300 + Math.floor(next() * 200) : Math.floor(next() * 60)
    pages.push({ name, text: `# ${name}\n\n${textOf(name, values)}`, daysOld })
    for (const [at, { question }] of templates.entries()) {
      productQuestions.push(question(name))
      known.push({ question: question(name), fact: values[at] ?? "" })
    }
  }
  const contradictions = Array.from({ length: size.contradictions }, (_, place) => {
    const name = chosen[place] ?? ""
    const kind = Math.floor(next() * (templates.length + 1))
    const template = templates[kind]
    const value = facts[place]?.[kind]?.value ?? ""
    const said =
      template === undefined
        ? outdoorsRule.forbidden(name)
        : template.restated(name, pickOther(template.values, value))
    const page = `${name} notes`
    pages.push({ name: page, text: `Notes of the shop floor at ${pick(places)}. ${said}`, daysOld: 10 })
    return [name, page] as const
  })
  const duplicates = Array.from({ length: size.duplicates }, (_, at) => {
    const place = size.contradictions + at
    const name = chosen[place] ?? ""
    const text = (pages[place]?.text ?? "").split("\n\n")[1] ?? ""
    const page = `${name} copy`
    pages.push({ name: page, text: `# All about it\n\n${text}`, daysOld: 10 })
    return [name, page] as const
  })
  const gaps = services.slice(0, size.gaps).map((service, place): Gap => {
    const all = wordingsOf(service)
    const fact = `room ${place + 101}`
    return {
      wordings: all.slice(0, 4),
      held: all.slice(4),
      fact,
      answer: `For ${service} come to ${fact}, where the desk for ${service} is.`
    }
  })
  if (gaps.length < size.gaps) throw new Error("There are not enough services.")
  const askings: Array<Asking> = []
  const gapQuestionCount = Math.max(size.gaps * 4, Math.floor(size.conversations * gapShare))
  for (let count = 0; count < gapQuestionCount; count++) {
    const gap = count % size.gaps
    const wordings = gaps[gap]?.wordings ?? []
    const question = wordings[Math.floor(count / size.gaps) % wordings.length] ?? ""
    askings.push({ question, person: `person-${count}`, rating: null, gap })
  }
  const oldPages = chosen.slice(firstOld)
  // Three turns of each old page are rated; down where it is stale.
  for (const [place, name] of oldPages.entries())
    for (const { question } of templates.slice(0, 3))
      askings.push({
        question: question(name),
        person: `rater-${place}`,
        rating: place < size.stale ? -1 : 1,
        gap: null
      })
  while (askings.length < size.conversations) {
    // Few replies are rated, and thumbs-down have various reasons.
    const chance = next()
    askings.push({
      question: pick(productQuestions.slice(0, firstOld * templates.length)),
      person: `person-${askings.length}`,
      rating: chance < 0.02 ? -1 : chance < 0.1 ? 1 : null,
      gap: null
    })
  }
  return {
    pages,
    askings,
    gaps,
    contradictions,
    duplicates,
    stale: oldPages.slice(0, size.stale),
    // About products that no other page mentions.
    known: known.slice(contradictingAndCopied * templates.length)
  }
}
