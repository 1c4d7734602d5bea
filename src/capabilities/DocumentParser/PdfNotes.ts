/** What a PDF shows on a page beside the page's content: values of form fields, and texts of annotations. */
import * as Schema from "effect/Schema"
import { optional } from "../../domain/Optional.ts"
import { oneLine } from "./PlainText.ts"

export interface Notes {
  /** Paragraphs by the index of their page. */
  readonly texts: ReadonlyMap<number, ReadonlyArray<string>>
  /** True if one of them is the value of a form field. */
  readonly hasFields: boolean
}

/** The types of the library for the annotations that are read: text, free text, four kinds of marks, and form fields. */
export const noteTypes: ReadonlySet<number> = new Set([1, 3, 9, 10, 11, 12, 20])

const Placed = Schema.Struct({
  pageIndex: Schema.Number,
  annotationFlags: Schema.Number,
  rect: Schema.Array(Schema.Number)
})
type Placed = typeof Placed.Type
const isPlaced = Schema.is(Placed)

const Choice = Schema.NullOr(Schema.String)
const Field = Schema.Struct({
  fieldType: Schema.Literal("Tx", "Ch", "Btn"),
  fieldFlags: Schema.Number,
  fieldName: Schema.String,
  /** The tooltip, which is written for readers of the form. */
  alternativeText: Schema.String,
  fieldValue: Schema.NullOr(Schema.Union(Schema.String, Schema.Array(Choice))),
  checkBox: optional(Schema.Boolean),
  exportValue: optional(Choice),
  radioButton: optional(Schema.Boolean),
  buttonValue: optional(Choice),
  options: optional(Schema.Array(Schema.Struct({ exportValue: Choice, displayValue: Choice })))
})
type Field = typeof Field.Type
const isField = Schema.is(Field)

const Annotation = Schema.Struct({
  subtype: Schema.Literal("FreeText", "Text", "Highlight", "Underline", "Squiggly", "StrikeOut"),
  contentsObj: Schema.Struct({ str: Schema.String }),
  /** The lines that a `FreeText` shows. */
  textContent: optional(Schema.Array(Schema.String)),
  /** Of an annotation that only marks the state of another, such as "Accepted". */
  state: optional(Schema.NullOr(Schema.String))
})
type Annotation = typeof Annotation.Type
const isAnnotation = Schema.is(Annotation)

/** The flags of annotations that are not shown: hidden, and not for the screen. */
const hiddenFlags = 2 | 32
const passwordFlag = 1 << 13
const maxLabelCharacters = 300

/** Names that forms of XFA generate have the places of their parts: `form[0].name[0]`. */
const labelOf = ({ alternativeText, fieldName }: Field): string =>
  oneLine((oneLine(alternativeText) || fieldName.replace(/\[\d+\]/g, "")).slice(0, maxLabelCharacters))

/** The texts that are shown for the chosen values. */
const chosenOf = ({ fieldValue, options = [] }: Field): string => {
  const shown = new Map(options.map(({ displayValue, exportValue }) => [exportValue, displayValue]))
  const values = typeof fieldValue === "string" ? [fieldValue] : (fieldValue ?? [])
  return values.map((value) => shown.get(value) ?? value ?? "").join(", ")
}

/** A checkbox that is on is an item of a Markdown task list. */
const fieldText = (field: Field): string => {
  const { buttonValue, checkBox, exportValue, fieldFlags, fieldType, fieldValue, radioButton } = field
  if ((fieldFlags & passwordFlag) !== 0 && fieldType === "Tx") return ""
  const label = labelOf(field)
  if (fieldType === "Btn") {
    if (checkBox === true) return fieldValue === exportValue && fieldValue !== "Off" ? `[x] ${label}` : ""
    const isOn = radioButton === true && typeof buttonValue === "string" && fieldValue === buttonValue
    return isOn ? `${label}: ${oneLine(buttonValue)}` : ""
  }
  const value = oneLine(chosenOf(field))
  return value === "" ? "" : label === "" ? value : `${label}: ${value}`
}

const annotationText = ({ contentsObj, state, subtype, textContent = [] }: Annotation): string => {
  if (typeof state === "string") return ""
  const text = oneLine(contentsObj.str)
  if (subtype === "FreeText") return text || oneLine(textContent.join(" "))
  return text === "" ? "" : `Note: ${text}`
}

/** Height in points within which annotations stand side by side. */
const rowHeight = 4
const rowOf = ({ rect }: Placed): number => Math.round((rect[3] ?? 0) / rowHeight)

const distinct = (texts: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(texts.filter((text) => text !== ""))
]

/** Of each page the fields and then the other texts, from top to bottom, without what is hidden, and without passwords. */
export const notesOf = (annotations: ReadonlyArray<unknown>): Notes => {
  const texts = new Map<number, ReadonlyArray<string>>()
  let hasFields = false
  const shown = annotations
    .filter(isPlaced)
    .filter(({ annotationFlags }) => (annotationFlags & hiddenFlags) === 0)
    .toSorted((a, b) => rowOf(b) - rowOf(a) || (a.rect[0] ?? 0) - (b.rect[0] ?? 0))
  const byPage = new Map<number, Array<unknown>>()
  for (const annotation of shown) {
    const ofPage = byPage.get(annotation.pageIndex)
    if (ofPage === undefined) byPage.set(annotation.pageIndex, [annotation])
    else ofPage.push(annotation)
  }
  for (const [index, ofPage] of byPage) {
    const fields = distinct(ofPage.filter(isField).map(fieldText))
    texts.set(index, [...fields, ...distinct(ofPage.filter(isAnnotation).map(annotationText))])
    hasFields ||= fields.length > 0
  }
  return { texts, hasFields }
}
