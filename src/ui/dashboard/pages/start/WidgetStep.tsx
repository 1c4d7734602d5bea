/** Step four: the widget's colour, and the website that may show it. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query"
import { Link } from "wouter"
import { isOutdated } from "../../api/Client.ts"
import { source, type SourceItem } from "../../api/Sources.ts"
import { patchWidget, questions, type Widget, widget as widgetQuery } from "../../api/Widgets.ts"
import { Button } from "../../components/Button.tsx"
import { ColorField } from "../../components/ColorField.tsx"
import { Loaded } from "../../components/Page.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { texts, useText } from "../../text/Language.tsx"
import { OriginsField } from "../agents/OriginsField.tsx"
import { hasValidOrigins, formOf, patchOf, previewOf } from "../widget/widgetForm.ts"
import { WidgetPreview } from "../widget/WidgetPreview.tsx"
import css from "./Start.module.css"

const words = texts(
  {
    title: (name: string) => `Widget of ${name}`,
    color: "Your colour",
    origins: "Websites that may show it",
    originsHelp: "One a line, such as https://www.example.com.",
    save: "Save and get the script",
    more: "More settings"
  },
  {
    title: (name: string) => `Widget von ${name}`,
    color: "Ihre Farbe",
    origins: "Websites, die es zeigen dürfen",
    originsHelp: "Je Zeile eine, etwa https://www.example.com.",
    save: "Speichern und Skript holen",
    more: "Weitere Einstellungen"
  }
)

interface Props {
  readonly agent: { readonly id: string; readonly name: string }
  /** The agent's sources. The website of one of them is proposed. */
  readonly sources: ReadonlyArray<SourceItem>
  readonly onSaved: () => void
}

interface WidgetStepFormProps extends Omit<Props, "sources"> {
  readonly stored: Widget
  readonly proposed: { readonly origins: string; readonly suggestions: string }
}

const WidgetStepForm = ({ agent, onSaved, proposed, stored }: WidgetStepFormProps) => {
  const t = useText(words)
  const queries = useQueryClient()
  const { queryKey } = widgetQuery(agent.id)
  const storedFields = formOf(stored)
  const initialFields = stored.version === 0 ? { ...storedFields, ...proposed } : storedFields
  const draft = useDraft({
    name: `start.widget.${agent.id}`,
    title: t.title(agent.name),
    stored: initialFields
  })
  const { change, value } = draft
  const save = useMutation({
    mutationFn: () => patchWidget(agent.id, stored.version, patchOf(value)),
    onSuccess: (saved) => {
      draft.saved()
      queries.setQueryData(queryKey, saved)
      onSaved()
    },
    // The widget is read again, so that the next attempt is based on the current version.
    onError: (problem) => (isOutdated(problem) ? queries.invalidateQueries({ queryKey }) : undefined)
  })
  const { errorOf, general } = useIssues(save.error, ["allowedOrigins"])
  return (
    <div className={css["look"]}>
      <div className={css["fields"]}>
        <Form
          onSubmit={() => {
            if (hasValidOrigins(value)) save.mutate()
          }}
          problem={general}
          draft={draft}
        >
          <ColorField label={t.color} value={value.color} onChange={(color) => change({ color })} />
          <OriginsField
            label={t.origins}
            help={t.originsHelp}
            required
            value={value.origins}
            onChange={(origins) => change({ origins })}
            error={errorOf("allowedOrigins")}
          />
          <div className={css["row"]}>
            <Button kind="primary" type="submit" busy={save.isPending}>
              {t.save}
            </Button>
            <Link href={`/agents/${agent.id}/widget`}>{t.more}</Link>
          </div>
        </Form>
      </div>
      <WidgetPreview look={previewOf(value, agent)} />
    </div>
  )
}

const WidgetStep = ({ agent, onSaved, sources }: Props) => {
  const query = useQuery(widgetQuery(agent.id))
  const suggestedQuestions = useQuery(questions(agent.id))
  const website = sources.findLast(({ type }) => type === "URL" || type === "SITEMAP")
  const detail = useQuery({ ...source(website?.id ?? ""), enabled: website !== undefined })
  const address = detail.data?.config.url ?? detail.data?.config.sitemapUrl ?? ""
  const proposed = {
    origins: URL.canParse(address) ? new URL(address).origin : "",
    suggestions: (suggestedQuestions.data ?? []).join("\n")
  }
  // Proposals are loaded before the form, so that it does not change while it is being filled in.
  const isReady = !suggestedQuestions.isLoading && !detail.isLoading
  return (
    <Loaded query={isReady ? query : { ...query, data: undefined, isPending: true }}>
      {(stored) => <WidgetStepForm agent={agent} stored={stored} proposed={proposed} onSaved={onSaved} />}
    </Loaded>
  )
}

export default WidgetStep
