/** Forms to create, change and import test cases. */
import { useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { membersOf } from "../../api/membersOf.ts"
import {
  createTestCase,
  importTestCases,
  type TestCase,
  type TestCaseInput,
  testCases,
  updateTestCase
} from "../../api/TestCases.ts"
import { FileField, Select, TextArea, TextField } from "../../components/Field.tsx"
import { ConflictingValue, DraftState } from "../../forms/DraftNotes.tsx"
import { DialogActions } from "../../forms/DialogActions.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useSaveAndClose } from "../../forms/useSaveAndClose.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { texts, useText } from "../../text/Language.tsx"
import { linesOf } from "../../forms/lines.ts"
import { parseJsonObject } from "../../forms/json.ts"
import { requireUnchanged } from "../../forms/requireUnchanged.ts"

const words = texts(
  {
    draft: "Test case",
    question: "Question",
    sources: "Expected sources",
    sourcesHelp:
      "One a line: the name of a source, an address or its end, or a heading. The reply has to cite one of them.",
    facts: "Expected facts",
    factsHelp: "One a line. The reply has to state each of them, word for word.",
    refusal: "Refusal",
    any: "Either is fine",
    refuses: "It has to decline to answer",
    answers: "It has to answer",
    grounding: "Support by sources",
    groundingHelp: "The reply has to cite a source, and none of its citations may be unsupported.",
    anyGrounding: "Not checked",
    grounded: "Required",
    schema: "JSON Schema of the reply",
    schemaHelp:
      "The reply has to be a JSON object that fits it. Without a language model the case does not pass.",
    badJson: "This is no JSON object.",
    criterion: "Criterion",
    criterionHelp: "Judged by the language model. Without one the case does not pass.",
    note: "Note",
    noteHelp: "For people. Nothing checks it.",
    file: "File",
    fileHelp:
      "JSON Lines, or CSV with the columns question, expectSources, expectFacts, expectRefusal, expectGrounding, responseSchema, criterion and note. At most 1 MB.",
    import: "Import"
  },
  {
    draft: "Testfall",
    question: "Frage",
    sources: "Erwartete Quellen",
    sourcesHelp:
      "Je Zeile eine: der Name einer Quelle, eine Adresse oder ihr Ende, oder eine Überschrift. Die Antwort muss eine davon zitieren.",
    facts: "Erwartete Aussagen",
    factsHelp: "Je Zeile eine. Die Antwort muss jede wörtlich enthalten.",
    refusal: "Ablehnung",
    any: "Beides ist recht",
    refuses: "Der Agent muss ablehnen",
    answers: "Der Agent muss antworten",
    grounding: "Beleg durch Quellen",
    groundingHelp: "Die Antwort muss eine Quelle zitieren, und keines ihrer Zitate darf unbelegt sein.",
    anyGrounding: "Nicht geprüft",
    grounded: "Erforderlich",
    schema: "JSON-Schema der Antwort",
    schemaHelp:
      "Die Antwort muss ein JSON-Objekt sein, das ihm entspricht. Ohne Sprachmodell ist der Testfall nicht bestanden.",
    badJson: "Das ist kein JSON-Objekt.",
    criterion: "Kriterium",
    criterionHelp: "Das Sprachmodell beurteilt es. Ohne Modell ist der Testfall nicht bestanden.",
    note: "Notiz",
    noteHelp: "Für Menschen. Nichts prüft sie.",
    file: "Datei",
    fileHelp:
      "JSON Lines, oder CSV mit den Spalten question, expectSources, expectFacts, expectRefusal, expectGrounding, responseSchema, criterion und note. Höchstens 1 MB.",
    import: "Importieren"
  }
)

type Refusal = "any" | "refuses" | "answers"
type Grounding = "any" | "grounded"

/** Values of the fields, as typed. */
interface CaseForm {
  readonly [field: string]: string
  readonly question: string
  readonly sources: string
  readonly facts: string
  readonly refusal: Refusal
  readonly grounding: Grounding
  readonly schema: string
  readonly criterion: string
  readonly note: string
}

const emptyForm: CaseForm = {
  question: "",
  sources: "",
  facts: "",
  refusal: "any",
  grounding: "any",
  schema: "",
  criterion: "",
  note: ""
}

const formOf = ({
  criterion,
  expectFacts,
  expectGrounding,
  expectRefusal,
  expectSources,
  note,
  question,
  responseSchema
}: TestCase): CaseForm => ({
  question,
  sources: expectSources.join("\n"),
  facts: expectFacts.join("\n"),
  refusal: expectRefusal === null ? "any" : expectRefusal ? "refuses" : "answers",
  grounding: expectGrounding === true ? "grounded" : "any",
  schema: responseSchema === null ? "" : JSON.stringify(responseSchema, null, 2),
  criterion: criterion ?? "",
  note: note ?? ""
})

/** Undefined without a schema; null if it is no JSON object. */
const schemaOf = ({ schema }: CaseForm) => (schema.trim() === "" ? undefined : parseJsonObject(schema))

const inputOf = (form: CaseForm): TestCaseInput => {
  const { criterion, facts, grounding, note, question, refusal, sources } = form
  const responseSchema = schemaOf(form)
  return {
    question,
    expectSources: linesOf(sources),
    expectFacts: linesOf(facts),
    ...(refusal === "any" ? {} : { expectRefusal: refusal === "refuses" }),
    ...(grounding === "any" ? {} : { expectGrounding: true }),
    ...(responseSchema === undefined ? {} : { responseSchema }),
    ...(criterion.trim() === "" ? {} : { criterion }),
    ...(note.trim() === "" ? {} : { note })
  }
}

/** The label of a chosen value. */
const labelIn = (labels: Readonly<Record<string, string>>) => (chosen: unknown) =>
  labels[String(chosen)] ?? String(chosen)

interface Props {
  readonly agentId: string
  /** Null for a new one. */
  readonly stored: TestCase | null
  readonly onClose: () => void
}

export const TestCaseForm = ({ agentId, onClose, stored }: Props) => {
  const t = useText(words)
  const queries = useQueryClient()
  const draft = useDraft({
    name: stored === null ? `case.new.${agentId}` : `case.${stored.id}`,
    title: t.draft,
    stored: stored === null ? emptyForm : formOf(stored)
  })
  const { change, value } = draft
  const refusals = { any: t.any, answers: t.answers, refuses: t.refuses }
  const groundings = { any: t.anyGrounding, grounded: t.grounded }
  const save = useSaveAndClose({
    save: async () => {
      if (stored === null) return createTestCase(agentId, inputOf(value))
      const { queryKey } = testCases(agentId)
      await queries.refetchQueries({ queryKey, exact: true })
      const newest = queries
        .getQueryData(queryKey)
        ?.pages.flatMap(({ cases }) => cases)
        .find(({ id }) => id === stored.id)
      if (newest !== undefined) requireUnchanged(formOf(stored), formOf(newest))
      return updateTestCase(stored.id, inputOf(value))
    },
    refresh: () => queries.invalidateQueries({ queryKey: testCases(agentId).queryKey }),
    onClose,
    draft
  })
  const { errorOf, general } = useIssues(save.error, [
    "question",
    "expectSources",
    "expectFacts",
    "responseSchema",
    "criterion",
    "note"
  ])
  const isSchemaInvalid = schemaOf(value) === null
  const submit = () => {
    if (!isSchemaInvalid) save.mutate()
  }
  return (
    <Form onSubmit={submit} problem={general} draft={draft}>
      <DraftState draft={draft} />
      <TextArea
        label={t.question}
        required
        rows={2}
        value={value.question}
        onChange={(question) => change({ question })}
        error={errorOf("question")}
      />
      <ConflictingValue draft={draft} name="question" />
      <TextArea
        label={t.sources}
        help={t.sourcesHelp}
        rows={3}
        value={value.sources}
        onChange={(sources) => change({ sources })}
        error={errorOf("expectSources")}
      />
      <ConflictingValue draft={draft} name="sources" />
      <TextArea
        label={t.facts}
        help={t.factsHelp}
        guide="evaluation#test-cases-of-an-agent"
        rows={3}
        value={value.facts}
        onChange={(facts) => change({ facts })}
        error={errorOf("expectFacts")}
      />
      <ConflictingValue draft={draft} name="facts" />
      <Select
        label={t.refusal}
        value={value.refusal}
        onChange={(refusal) => change({ refusal })}
        options={membersOf(refusals).map((one) => [one, refusals[one]] as const)}
      />
      <ConflictingValue draft={draft} name="refusal" format={labelIn(refusals)} />
      <Select
        label={t.grounding}
        help={t.groundingHelp}
        value={value.grounding}
        onChange={(grounding) => change({ grounding })}
        options={membersOf(groundings).map((one) => [one, groundings[one]] as const)}
      />
      <ConflictingValue draft={draft} name="grounding" format={labelIn(groundings)} />
      <TextArea
        label={t.schema}
        help={t.schemaHelp}
        guide="chat#ask-for-an-object"
        rows={3}
        mono
        value={value.schema}
        onChange={(schema) => change({ schema })}
        error={isSchemaInvalid ? t.badJson : errorOf("responseSchema")}
      />
      <ConflictingValue draft={draft} name="schema" />
      <TextArea
        label={t.criterion}
        help={t.criterionHelp}
        rows={2}
        value={value.criterion}
        onChange={(criterion) => change({ criterion })}
        error={errorOf("criterion")}
      />
      <ConflictingValue draft={draft} name="criterion" />
      <TextField
        label={t.note}
        help={t.noteHelp}
        value={value.note}
        onChange={(note) => change({ note })}
        error={errorOf("note")}
      />
      <ConflictingValue draft={draft} name="note" />
      <DialogActions busy={save.isPending} onClose={onClose} />
    </Form>
  )
}

export const ImportForm = ({ agentId, onClose }: Omit<Props, "stored">) => {
  const t = useText(words)
  const queries = useQueryClient()
  const [file, setFile] = useState<File | null>(null)
  const importFile = useMutation({
    mutationFn: async (chosen: File) =>
      importTestCases(agentId, {
        format: /\.csv$/iu.test(chosen.name) ? "csv" : "jsonl",
        text: await chosen.text()
      }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: testCases(agentId).queryKey })
      onClose()
    }
  })
  const { errorOf, general } = useIssues(importFile.error, ["text"])
  return (
    <Form
      onSubmit={() => {
        if (file !== null) importFile.mutate(file)
      }}
      problem={general}
    >
      <FileField
        label={t.file}
        help={t.fileHelp}
        accept=".jsonl,.ndjson,.csv"
        file={file}
        onChange={setFile}
        error={errorOf("text")}
      />
      <DialogActions busy={importFile.isPending} onClose={onClose} action={t.import} />
    </Form>
  )
}
