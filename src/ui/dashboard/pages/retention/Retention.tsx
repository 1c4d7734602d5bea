/** Retention periods of the tenant: admins read them, owners change them. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { type Retention as RetentionPeriods, retention, setRetention } from "../../api/Retention.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { Button } from "../../components/Button.tsx"
import { Actions } from "../../components/Dialog.tsx"
import { TextField } from "../../components/Field.tsx"
import { Loaded, Page } from "../../components/Page.tsx"
import { ConflictingValue, DraftState } from "../../forms/DraftNotes.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { texts, useText } from "../../text/Language.tsx"
import css from "./Retention.module.css"

const words = texts(
  {
    title: "Retention",
    lead: "After how many days something is deleted for good. An empty field keeps it for ever. Figures of usage always stay.",
    conversations: "Conversations with their messages",
    conversationsHelp:
      "Days since the last message. What waits for a human, or is with one, stays until it is closed.",
    anonymousPeople: "Conversations with anonymous people",
    anonymousPeopleHelp:
      "Of people without an id of your own. They are deleted too. Empty: as long as other conversations.",
    longest: (days: number) => `Here it is kept for at most ${days} ${days === 1 ? "day" : "days"}.`,
    runs: "Traces of answers",
    auditEntries: "Audit trail",
    emailLogs: "Log of e-mails",
    eventDeliveries: "Log of webhooks",
    eventDeliveriesHelp: "Never kept for more than seven days.",
    ingestionJobs: "Finished readings of sources",
    ingestionJobsHelp: "The last one of each source stays.",
    days: "days",
    forever: "For ever",
    ownersOnly: "Only owners change this."
  },
  {
    title: "Aufbewahrung",
    lead: "Nach wie vielen Tagen etwas endgültig gelöscht wird. Ein leeres Feld bewahrt es für immer auf. Verbrauchszahlen bleiben immer.",
    conversations: "Gespräche mit ihren Nachrichten",
    conversationsHelp:
      "Tage seit der letzten Nachricht. Was auf einen Menschen wartet oder bei einem ist, bleibt, bis es geschlossen wird.",
    anonymousPeople: "Gespräche mit anonymen Personen",
    anonymousPeopleHelp:
      "Von Personen ohne eigene Kennung. Auch diese werden gelöscht. Leer: so lange wie andere Gespräche.",
    longest: (days: number) =>
      `Hier wird es höchstens ${days} ${days === 1 ? "Tag" : "Tage"} lang aufbewahrt.`,
    runs: "Abläufe von Antworten",
    auditEntries: "Protokoll",
    emailLogs: "Protokoll der E-Mails",
    eventDeliveries: "Protokoll der Webhooks",
    eventDeliveriesHelp: "Nie länger als sieben Tage aufbewahrt.",
    ingestionJobs: "Beendete Lesevorgänge von Quellen",
    ingestionJobsHelp: "Der letzte jeder Quelle bleibt.",
    days: "Tage",
    forever: "Für immer",
    ownersOnly: "Nur Inhaber ändern das."
  }
)

const kinds = [
  "conversations",
  "anonymousPeople",
  "runs",
  "auditEntries",
  "emailLogs",
  "eventDeliveries",
  "ingestionJobs"
] as const
type Kind = (typeof kinds)[number]

const fieldText = (days: number | null) => (days === null ? "" : String(days))
const daysOf = (text: string) => (text.trim() === "" ? null : Number(text))

interface Props {
  readonly stored: RetentionPeriods
  /** The maximum periods of the installation. */
  readonly maximum: RetentionPeriods
  readonly user: User
}

const RetentionForm = ({ stored, maximum, user }: Props) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const draft = useDraft<Record<Kind, string>>({
    name: "retention",
    title: t.title,
    stored: {
      conversations: fieldText(stored.conversations),
      anonymousPeople: fieldText(stored.anonymousPeople),
      runs: fieldText(stored.runs),
      auditEntries: fieldText(stored.auditEntries),
      emailLogs: fieldText(stored.emailLogs),
      eventDeliveries: fieldText(stored.eventDeliveries),
      ingestionJobs: fieldText(stored.ingestionJobs)
    }
  })
  const save = useMutation({
    mutationFn: () =>
      setRetention(
        Object.fromEntries(
          kinds
            .filter((kind) => daysOf(draft.value[kind]) !== stored[kind])
            .map((kind) => [kind, daysOf(draft.value[kind])])
        )
      ),
    onMutate: () => draft.value,
    onSuccess: async (_, __, sent) => {
      draft.saved(sent)
      await queries.invalidateQueries({ queryKey: retention.queryKey })
    }
  })
  const { errorOf, general } = useIssues(save.error, kinds)
  const mayChange = atLeast(user.role, "owner")
  const helpTexts: Partial<Record<Kind, string>> = {
    conversations: t.conversationsHelp,
    anonymousPeople: t.anonymousPeopleHelp,
    eventDeliveries: t.eventDeliveriesHelp,
    ingestionJobs: t.ingestionJobsHelp
  }
  const helpOf = (kind: Kind) => {
    const days = maximum[kind]
    const lines = [helpTexts[kind], days === null ? undefined : t.longest(days)].filter(
      (line) => line !== undefined
    )
    return lines.length === 0 ? {} : { help: lines.join(" ") }
  }
  return (
    <Form onSubmit={() => save.mutate()} problem={general}>
      <div className={css["kinds"]}>
        {kinds.map((kind) => (
          <div key={kind}>
            <TextField
              label={t[kind]}
              {...helpOf(kind)}
              inputMode="numeric"
              pattern="[0-9]+"
              placeholder={t.forever}
              unit={t.days}
              readOnly={!mayChange}
              value={draft.value[kind]}
              onChange={(days) => draft.change({ [kind]: days })}
              error={errorOf(kind)}
            />
            <ConflictingValue draft={draft} name={kind} />
          </div>
        ))}
      </div>
      {mayChange ? (
        <Actions sticky>
          <DraftState draft={draft}>{save.isSuccess ? common.saved : ""}</DraftState>
          <Button kind="primary" type="submit" busy={save.isPending}>
            {common.save}
          </Button>
        </Actions>
      ) : (
        <p>{t.ownersOnly}</p>
      )}
    </Form>
  )
}

const Retention = ({ user }: { readonly user: User }) => {
  const t = useText(words)
  const query = useQuery(retention)
  return (
    <Page title={t.title} lead={t.lead} guide="privacy#retention" narrow>
      <Loaded query={query}>
        {(limits) => <RetentionForm stored={limits.retention} maximum={limits.installation} user={user} />}
      </Loaded>
    </Page>
  )
}

export default Retention
