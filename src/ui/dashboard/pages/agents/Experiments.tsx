/** Experiments: runs of the agent's test cases against a version, compared with the published one. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import type { Agent } from "../../api/Agents.ts"
import {
  cancelExperiment,
  deleteExperiment,
  type Experiment,
  experiments,
  isOpen,
  setThreshold,
  startExperiment,
  type Threshold,
  threshold
} from "../../api/Experiments.ts"
import { atLeast } from "../../api/Session.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Switch } from "../../components/Checkboxes.tsx"
import { Actions as Buttons, Dialog } from "../../components/Dialog.tsx"
import { Select, TextField } from "../../components/Field.tsx"
import { isEmptyList, Listing, useCreateDialog } from "../../components/Listing.tsx"
import { Empty, Loaded, Section } from "../../components/Page.tsx"
import { Progress } from "../../components/Progress.tsx"
import { Cell, RowActions, RowButton } from "../../components/RowActions.tsx"
import { ConflictingValue, DraftState } from "../../forms/DraftNotes.tsx"
import { DialogActions } from "../../forms/DialogActions.tsx"
import { Form } from "../../forms/Form.tsx"
import { useSaveAndClose } from "../../forms/useSaveAndClose.ts"
import { requireUnchanged } from "../../forms/requireUnchanged.ts"
import { useDraft } from "../../forms/useDraft.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { parseNumber } from "../../text/parseNumber.ts"
import { ResultText } from "../../text/ResultText.tsx"
import { AgentPart, type PartProps } from "./AgentPart.tsx"
import { ExperimentResults } from "./ExperimentResults.tsx"

const words = texts(
  {
    title: "Experiments",
    results: "Results",
    lead: "All test cases asked of a version, beside the version that answers now.",
    run: "Run test cases",
    empty: "No experiment yet",
    emptyLead:
      "An experiment asks all test cases of a version and shows what came of each, beside the version that answers now. No customer sees it, and no tool is called.",
    version: "Version",
    draft: "Settings of a file",
    newest: (version: number) => `Version ${version}, the newest`,
    published: (version: number) => `Version ${version}, which answers now`,
    other: "Another model",
    otherHelp: "Left empty: that of the version.",
    when: "When",
    status: "Status",
    result: "Passed",
    queued: "Waits",
    running: "Under way",
    complete: "Complete",
    cancelled: "Cancelled",
    failed: "Failed",
    of: (passed: number, total: number) => `${passed} of ${total}`,
    show: "Show",
    stop: "Stop",
    removal: "Delete experiment",
    removalOf: "What came of it is gone, and a version that relies on it has to be asked again.",
    gate: "Before a version is published",
    gateLead: "A version that passes less is only published if somebody insists.",
    minimum: "Minimum share of test cases that pass, in percent",
    minimumHelp: "0 to 100. Leave empty to accept any share.",
    regression: "Not clearly worse than the version that answers",
    on: "on",
    off: "off"
  },
  {
    title: "Experimente",
    results: "Ergebnisse",
    lead: "Alle Testfälle, einer Version gestellt, neben der Version, die jetzt antwortet.",
    run: "Testfälle stellen",
    empty: "Noch kein Experiment",
    emptyLead:
      "Ein Experiment stellt einer Version alle Testfälle und zeigt, was herauskam, neben der Version, die jetzt antwortet. Kunden sehen nichts davon, und kein Werkzeug wird aufgerufen.",
    version: "Version",
    draft: "Einstellungen einer Datei",
    newest: (version: number) => `Version ${version}, die neueste`,
    published: (version: number) => `Version ${version}, die jetzt antwortet`,
    other: "Anderes Modell",
    otherHelp: "Leer: das der Version.",
    when: "Wann",
    status: "Stand",
    result: "Bestanden",
    queued: "Wartet",
    running: "Läuft",
    complete: "Fertig",
    cancelled: "Abgebrochen",
    failed: "Gescheitert",
    of: (passed: number, total: number) => `${passed} von ${total}`,
    show: "Zeigen",
    stop: "Anhalten",
    removal: "Experiment löschen",
    removalOf: "Was herauskam, ist dann fort; eine Version, die darauf beruht, muss neu gefragt werden.",
    gate: "Bevor eine Version veröffentlicht wird",
    gateLead: "Eine Version, die weniger besteht, wird nur veröffentlicht, wenn jemand darauf besteht.",
    minimum: "Mindestanteil bestandener Testfälle, in Prozent",
    minimumHelp: "0 bis 100. Leer lassen, um jeden Anteil zuzulassen.",
    regression: "Nicht deutlich schlechter als die Version, die antwortet",
    on: "an",
    off: "aus"
  }
)

const RunForm = ({ agent, onClose }: { readonly agent: Agent; readonly onClose: () => void }) => {
  const t = useText(words)
  const queries = useQueryClient()
  const { id, publishedVersion, version: newest } = agent
  const [version, setVersion] = useState(String(newest))
  const [model, setModel] = useState("")
  const attempt = useSaveAndClose({
    save: () =>
      startExperiment(id, {
        version: Number(version),
        // A version is not compared with itself, which would ask everything twice.
        ...(Number(version) === publishedVersion && model.trim() === ""
          ? {}
          : { baselineVersion: publishedVersion }),
        ...(model.trim() === "" ? {} : { model })
      }),
    refresh: () => queries.invalidateQueries({ queryKey: experiments(id).queryKey }),
    onClose
  })
  return (
    <Form onSubmit={() => attempt.mutate()} problem={attempt.error}>
      <Select
        label={t.version}
        value={version}
        onChange={setVersion}
        options={
          newest === publishedVersion
            ? [[String(newest), t.published(newest)]]
            : [
                [String(newest), t.newest(newest)],
                [String(publishedVersion), t.published(publishedVersion)]
              ]
        }
      />
      <TextField label={t.other} help={t.otherHelp} value={model} onChange={setModel} />
      <DialogActions busy={attempt.isPending} onClose={onClose} action={t.run} />
    </Form>
  )
}

/** The values of the fields, as typed. */
const thresholdFieldsOf = ({ minPass, noRegression }: Threshold) => ({
  least: minPass === null ? "" : String(Math.round(minPass * 1_000) / 10),
  noRegression
})

const ThresholdForm = ({ agentId, stored }: { readonly agentId: string; readonly stored: Threshold }) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const draft = useDraft({
    name: `threshold.${agentId}`,
    title: t.gate,
    stored: thresholdFieldsOf(stored)
  })
  const { change, value } = draft
  const minPassOf = ({ least }: typeof value) => {
    // Unchanged input keeps the stored value, which may have more digits than are shown.
    if (least === thresholdFieldsOf(stored).least) return stored.minPass
    return least.trim() === "" ? null : parseNumber(least) / 100
  }
  const attempt = useMutation({
    mutationFn: async () => {
      requireUnchanged(stored, await queries.fetchQuery({ ...threshold(agentId), staleTime: 0 }))
      return setThreshold(agentId, { minPass: minPassOf(value), noRegression: value.noRegression })
    },
    onMutate: () => value,
    onSuccess: ({ threshold: saved }, _, sent) => {
      draft.saved(sent)
      queries.setQueryData(threshold(agentId).queryKey, saved)
    }
  })
  return (
    <Form onSubmit={() => attempt.mutate()} problem={attempt.error} draft={draft}>
      <TextField
        label={t.minimum}
        help={t.minimumHelp}
        guide="evaluation#thresholds-of-publishing"
        type="text"
        inputMode="decimal"
        pattern="100|\d{1,2}([.,]\d+)?"
        value={value.least}
        onChange={(least) => change({ least })}
      />
      <ConflictingValue draft={draft} name="least" />
      <Switch
        label={t.regression}
        isSelected={value.noRegression}
        onChange={(noRegression) => change({ noRegression })}
      />
      <ConflictingValue draft={draft} name="noRegression" format={(on) => (on === true ? t.on : t.off)} />
      <Buttons>
        <DraftState draft={draft}>{attempt.isSuccess ? common.saved : ""}</DraftState>
        <Button type="submit" busy={attempt.isPending}>
          {common.save}
        </Button>
      </Buttons>
    </Form>
  )
}

const State = ({ experiment }: { readonly experiment: Experiment }) => {
  const t = useText(words)
  const { asked, reason, status, total } = experiment
  if (isOpen(experiment) && total > 0)
    return <Progress label={t[status]} value={Math.round((100 * asked) / total)} />
  return (
    <Cell notes={[reason === null ? null : <ResultText message={reason} />]}>
      <Badge tone={status === "complete" ? "good" : "neutral"}>{t[status]}</Badge>
    </Cell>
  )
}

const Actions = ({
  agentId,
  experiment,
  mayChange,
  onShow
}: {
  readonly agentId: string
  readonly experiment: Experiment
  readonly mayChange: boolean
  readonly onShow: () => void
}) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const { moment } = useFormat()
  const queries = useQueryClient()
  const refresh = () => queries.invalidateQueries({ queryKey: experiments(agentId).queryKey })
  const stop = useMutation({ mutationFn: () => cancelExperiment(experiment.id), onSettled: refresh })
  const of = moment(experiment.createdAt)
  return (
    <RowActions
      of={of}
      id={experiment.id}
      problem={stop.error}
      actions={[
        ...(mayChange && isOpen(experiment) ? [{ label: t.stop, does: () => stop.mutate() }] : []),
        ...(mayChange && !isOpen(experiment)
          ? [
              {
                label: common.delete,
                does: {
                  title: t.removal,
                  question: t.removalOf,
                  action: common.delete,
                  onConfirm: () => deleteExperiment(experiment.id).then(refresh)
                }
              }
            ]
          : [])
      ]}
    >
      <RowButton label={t.show} of={of} onClick={onShow} />
    </RowActions>
  )
}

const Experiments = ({ agent, user }: PartProps) => {
  const t = useText(words)
  const mayChange = atLeast(user.role, "admin")
  const { moment } = useFormat()
  const [shownId, setShownId] = useState<string | null>(null)
  const query = useInfiniteQuery(experiments(agent.id))
  const thresholdQuery = useQuery(threshold(agent.id))
  const adding = useCreateDialog({ title: t.run, form: (close) => <RunForm agent={agent} onClose={close} /> })
  const add = mayChange ? adding.button : null
  return (
    <AgentPart
      part="experiments"
      agent={agent}
      user={user}
      lead={t.lead}
      guide="evaluation#experiments"
      actions={isEmptyList(query, (page) => page.experiments) ? undefined : add}
    >
      {adding.dialog}
      <Dialog title={t.results} isOpen={shownId !== null} onClose={() => setShownId(null)} wide>
        {shownId === null ? null : <ExperimentResults id={shownId} />}
      </Dialog>
      <Listing
        query={query}
        rowsOf={(page) => page.experiments}
        empty={<Empty title={t.empty} lead={t.emptyLead} action={add} />}
        label={t.title}
        keyOf={({ id }) => id}
        columns={[
          { title: t.when, noWrap: true, cell: ({ createdAt }) => moment(createdAt) },
          {
            title: t.version,
            cell: ({ model, version }) => <Cell notes={[model]}>{version ?? t.draft}</Cell>
          },
          { title: t.status, cell: (experiment) => <State experiment={experiment} /> },
          { title: t.result, cell: ({ asked, passed }) => t.of(passed, asked) }
        ]}
        actions={(experiment) => (
          <Actions
            agentId={agent.id}
            experiment={experiment}
            mayChange={mayChange}
            onShow={() => setShownId(experiment.id)}
          />
        )}
      />
      {/* Shown after the list has loaded, so that it does not move. */}
      {mayChange && !query.isPending ? (
        <Section title={t.gate} lead={t.gateLead} guide="evaluation#thresholds-of-publishing" beside>
          <Loaded query={thresholdQuery}>
            {(stored) => <ThresholdForm agentId={agent.id} stored={stored} />}
          </Loaded>
        </Section>
      ) : null}
    </AgentPart>
  )
}

export default Experiments
