/** One correction: its answer, a preview of what it would change, and its approval. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { Link } from "wouter"
import { isOutdated } from "../../api/Client.ts"
import {
  approveCorrection,
  type Correction,
  correction as correctionQuery,
  corrections,
  deleteCorrection,
  previewCorrection,
  updateCorrection
} from "../../api/improve/Corrections.ts"
import { testCases } from "../../api/TestCases.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Actions, ConfirmButton } from "../../components/Dialog.tsx"
import { TextArea } from "../../components/Field.tsx"
import { Card, Loaded } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { ConflictingValue, DraftState } from "../../forms/DraftNotes.tsx"
import { Form } from "../../forms/Form.tsx"
import { requireUnchanged } from "../../forms/requireUnchanged.ts"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Improve.module.css"
import { ReplayResults } from "./ReplayResults.tsx"

const words = texts(
  {
    all: "All corrections",
    title: "The right answer",
    draft: "Correction",
    human: "From the team's reply",
    model: "Drafted by the model",
    written: "Written by hand",
    humanHelp:
      "Somebody of the team answered this in a conversation. Take out what was meant for that person alone.",
    modelHelp: "The model drafted this from the sources. Read it before anybody else does.",
    writtenHelp: "Nobody of the team has answered it, and the sources do not tell. Write what is right.",
    question: "Question",
    questionHelp: "As customers ask it. Questions that are nearly the same find the answer, too.",
    answer: "Answer",
    answerHelp: "Markdown. Nobody is given it before it is approved.",
    effect: "What would change",
    effectLead:
      "Past questions that are like this one are asked again with the draft. No customer sees it, and no tool is called.",
    see: "See what would change",
    again: "Look again",
    first: "Write an answer first.",
    outdated: "The draft has changed since. Look again before you approve it.",
    approve: "Approve",
    changed: "It was changed in the meantime. Read what is written above before you approve it.",
    approveLead: "The agent gives this answer from then on, and a test case keeps it right.",
    discard: "Discard",
    discardTitle: "Discard correction",
    discardOf: (question: string) => `The draft for “${question}” is gone. Nobody has been given it.`,
    approved: "Approved",
    approvedLead: "The agent gives this answer. It can be changed in its source.",
    toSource: "Open the source",
    toCases: "Test cases"
  },
  {
    all: "Alle Korrekturen",
    title: "Die richtige Antwort",
    draft: "Korrektur",
    human: "Aus der Antwort des Teams",
    model: "Vom Modell entworfen",
    written: "Von Hand geschrieben",
    humanHelp:
      "Jemand aus dem Team hat das in einem Gespräch beantwortet. Bitte streichen, was nur für diese Person bestimmt war.",
    modelHelp: "Das Modell hat das aus den Quellen entworfen. Bitte lesen, bevor es jemand anders liest.",
    writtenHelp:
      "Niemand aus dem Team hat es beantwortet, und die Quellen sagen es nicht. Bitte schreiben, was richtig ist.",
    question: "Frage",
    questionHelp: "So, wie Kunden fragen. Fragen, die fast gleich lauten, finden die Antwort ebenfalls.",
    answer: "Antwort",
    answerHelp: "Markdown. Niemand bekommt sie, bevor sie freigegeben ist.",
    effect: "Was sich ändern würde",
    effectLead:
      "Frühere Fragen, die dieser gleichen, werden mit dem Entwurf erneut gestellt. Kunden sehen nichts davon, und kein Werkzeug wird aufgerufen.",
    see: "Ansehen, was sich ändern würde",
    again: "Erneut ansehen",
    first: "Zuerst eine Antwort schreiben.",
    outdated: "Der Entwurf hat sich seither geändert. Bitte vor der Freigabe erneut ansehen.",
    approve: "Freigeben",
    changed: "Inzwischen geändert. Bitte vor der Freigabe lesen, was oben steht.",
    approveLead: "Von da an gibt der Agent diese Antwort, und ein Testfall sorgt dafür, dass es so bleibt.",
    discard: "Verwerfen",
    discardTitle: "Korrektur verwerfen",
    discardOf: (question: string) => `Der Entwurf für „${question}“ ist dann fort. Niemand hat ihn bekommen.`,
    approved: "Freigegeben",
    approvedLead: "Der Agent gibt diese Antwort. Ändern lässt sie sich in ihrer Quelle.",
    toSource: "Quelle öffnen",
    toCases: "Testfälle"
  }
)

const ApprovedCorrection = ({ correction }: { readonly correction: Correction }) => {
  const t = useText(words)
  const { agentId, answer, question, sourceId } = correction
  return (
    <Card>
      <div className={css["row"]}>
        <h2>{t.title}</h2>
        <Badge tone="good">{t.approved}</Badge>
      </div>
      <p role="status">{t.approvedLead}</p>
      <div className={css["passage"]}>
        <span lang="" className={css["title"]}>
          {question}
        </span>
        <p lang="" className={css["quote"]}>
          {answer}
        </p>
        <div className={css["links"]}>
          {sourceId === null ? null : <Link href={`/sources/${sourceId}`}>{t.toSource}</Link>}
          <Link href={`/agents/${agentId}/cases`}>{t.toCases}</Link>
        </div>
      </div>
    </Card>
  )
}

const originTones = { human: "accent", model: "warn", written: "neutral" } as const

interface CorrectionFormProps {
  readonly correction: Correction
  readonly onClose: () => void
}

const CorrectionForm = ({ correction, onClose }: CorrectionFormProps) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const { agentId, answer, id, origin, preview, question } = correction
  const draft = useDraft({ name: `correction.${id}`, title: t.draft, stored: { question, answer } })
  const { change, isDirty, value } = draft
  const updateQueries = async (next: Correction) => {
    queries.setQueryData(correctionQuery(id).queryKey, next)
    await queries.invalidateQueries({ queryKey: corrections(agentId).queryKey })
  }
  const requireCurrent = async () => {
    const newest = await queries.fetchQuery({ ...correctionQuery(id), staleTime: 0 })
    requireUnchanged([question, answer], [newest.question, newest.answer])
  }
  const saveChanges = async () => {
    if (!isDirty) return
    await requireCurrent()
    queries.setQueryData(correctionQuery(id).queryKey, await updateCorrection(id, value))
    draft.saved(value)
  }
  const save = useMutation({
    mutationFn: async () => {
      await requireCurrent()
      return updateCorrection(id, value)
    },
    onMutate: () => value,
    onSuccess: (next, _, sent) => {
      draft.saved(sent)
      return updateQueries(next)
    }
  })
  const startPreview = useMutation({
    mutationFn: async () => {
      await saveChanges()
      return previewCorrection(id)
    },
    onSuccess: updateQueries
  })
  const approve = useMutation({
    mutationFn: async () => {
      await requireCurrent()
      return approveCorrection(id)
    },
    onSuccess: async (next) => {
      await updateQueries(next)
      await queries.invalidateQueries({ queryKey: testCases(agentId).queryKey })
    }
  })
  const { errorOf, general } = useIssues(save.error ?? startPreview.error, ["question", "answer"])
  // An error belongs to the text that was sent, so a change of the text clears it.
  const changeFields = (next: Parameters<typeof change>[0]) => {
    if (save.isError) save.reset()
    if (startPreview.isError) startPreview.reset()
    change(next)
  }
  const canApprove = preview?.isComplete === true && !isDirty
  const hasAnswer = value.answer.trim() !== ""
  const isRunning = preview !== null && !preview.isComplete
  const help = { human: t.humanHelp, model: t.modelHelp, written: t.writtenHelp }[origin]
  return (
    <>
      <Card>
        <div className={css["titled"]}>
          <div className={css["row"]}>
            <h2>{t.title}</h2>
            <Badge tone={originTones[origin]}>{t[origin]}</Badge>
          </div>
          <ConfirmButton
            trigger={<Button kind="quiet">{t.discard}</Button>}
            title={t.discardTitle}
            question={t.discardOf(question)}
            action={t.discard}
            onConfirm={async () => {
              await deleteCorrection(id)
              draft.discard()
              onClose()
              await queries.invalidateQueries({ queryKey: corrections(agentId).queryKey })
            }}
          />
        </div>
        <p className={css["soft"]}>{help}</p>
        <Form onSubmit={() => save.mutate()} problem={general} draft={draft}>
          <TextArea
            label={t.question}
            help={t.questionHelp}
            required
            rows={2}
            value={value.question}
            onChange={(next) => changeFields({ question: next })}
            error={errorOf("question")}
          />
          <ConflictingValue draft={draft} name="question" />
          <TextArea
            label={t.answer}
            help={t.answerHelp}
            required
            rows={8}
            value={value.answer}
            onChange={(next) => changeFields({ answer: next })}
            error={errorOf("answer")}
          />
          <ConflictingValue draft={draft} name="answer" />
          <Actions>
            <DraftState draft={draft}>{save.isSuccess ? common.saved : ""}</DraftState>
            <Button type="submit" busy={save.isPending} disabled={!isDirty}>
              {common.save}
            </Button>
          </Actions>
        </Form>
      </Card>
      <section aria-label={t.effect} className={css["list"]}>
        <div className={css["bar"]}>
          <div>
            <h2>{t.effect}</h2>
            <p className={css["lead"]}>{canApprove ? t.approveLead : t.effectLead}</p>
          </div>
          <div className={css["row"]}>
            {isRunning ? null : (
              <Button
                kind={canApprove ? "plain" : "primary"}
                busy={startPreview.isPending}
                disabled={!hasAnswer}
                onClick={() => startPreview.mutate()}
              >
                {preview === null ? t.see : t.again}
              </Button>
            )}
            {canApprove ? (
              <Button kind="primary" busy={approve.isPending} onClick={() => approve.mutate()}>
                {t.approve}
              </Button>
            ) : null}
          </div>
        </div>
        {hasAnswer ? null : <p className={css["soft"]}>{t.first}</p>}
        {preview !== null && isDirty ? <p role="status">{t.outdated}</p> : null}
        {approve.error === null ? null : (
          <Problem problem={approve.error} sentence={isOutdated(approve.error) ? t.changed : undefined} />
        )}
        {preview === null ? null : (
          <ReplayResults key={preview.experimentId} experimentId={preview.experimentId} />
        )}
      </section>
    </>
  )
}

/** For people who may not change corrections. */
const ReadOnlyCorrection = ({ correction }: { readonly correction: Correction }) => {
  const t = useText(words)
  const { answer, origin, preview, question } = correction
  return (
    <>
      <Card>
        <div className={css["row"]}>
          <h2>{t.title}</h2>
          <Badge tone={originTones[origin]}>{t[origin]}</Badge>
        </div>
        <p lang="" className={css["title"]}>
          {question}
        </p>
        <p lang="" className={css["quote"]}>
          {answer}
        </p>
      </Card>
      {preview === null ? null : (
        <ReplayResults key={preview.experimentId} experimentId={preview.experimentId} />
      )}
    </>
  )
}

interface Props {
  readonly agentId: string
  readonly id: string
  readonly mayChange: boolean
  readonly onClose: () => void
}

export const CorrectionEditor = ({ agentId, id, mayChange, onClose }: Props) => {
  const t = useText(words)
  const query = useQuery(correctionQuery(id))
  return (
    <>
      <Link className={css["back"] ?? ""} href={`/agents/${agentId}/improve?part=corrections`}>
        {`← ${t.all}`}
      </Link>
      <Loaded query={query}>
        {(correction) =>
          correction.status === "approved" ? (
            <ApprovedCorrection correction={correction} />
          ) : mayChange ? (
            <CorrectionForm correction={correction} onClose={onClose} />
          ) : (
            <ReadOnlyCorrection correction={correction} />
          )
        }
      </Loaded>
    </>
  )
}
