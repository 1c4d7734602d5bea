/** Names of the audit actions. An action without one is shown by its identifier. */
import type { Language } from "../../text/Language.tsx"

/** Names in English and German by action. */
const actions: Readonly<Record<string, Readonly<Record<Language, string>>>> = {
  "agent.create": { en: "Agent created", de: "Agent angelegt" },
  "agent.delete": { en: "Agent deleted", de: "Agent gelöscht" },
  "agent.publish": { en: "Version published", de: "Version veröffentlicht" },
  "agent.publish_forced": {
    en: "Version published against its threshold",
    de: "Version trotz Schwelle veröffentlicht"
  },
  "agent.split": { en: "Share of a version changed", de: "Anteil einer Version geändert" },
  "agent.split_forced": {
    en: "Share of a version changed against its threshold",
    de: "Anteil einer Version trotz Schwelle geändert"
  },
  "agent.threshold": { en: "Threshold of publishing changed", de: "Schwelle der Veröffentlichung geändert" },
  "agent.update": { en: "Agent changed", de: "Agent geändert" },
  "agent.update_forced": {
    en: "Agent changed against its threshold",
    de: "Agent trotz Schwelle geändert"
  },
  "agent_run.read": { en: "Trace read", de: "Ablauf gelesen" },
  "agent_run.replay": { en: "Turn replayed", de: "Antwort erneut durchgespielt" },
  "budget.create": { en: "Budget set", de: "Budget gesetzt" },
  "budget.delete": { en: "Budget removed", de: "Budget entfernt" },
  "budget.update": { en: "Budget changed", de: "Budget geändert" },
  "channel.claim": {
    en: "Channel's account claimed from others",
    de: "Konto eines Kanals von anderen übernommen"
  },
  "channel.create": { en: "Channel connected", de: "Kanal verbunden" },
  "channel.delete": { en: "Channel deleted", de: "Kanal gelöscht" },
  "channel.lose": {
    en: "Channel's account claimed by its owner",
    de: "Konto eines Kanals von seinem Inhaber übernommen"
  },
  "channel.update": { en: "Channel changed", de: "Kanal geändert" },
  "canned_reply.create": { en: "Canned reply added", de: "Textbaustein hinzugefügt" },
  "canned_reply.delete": { en: "Canned reply deleted", de: "Textbaustein gelöscht" },
  "canned_reply.update": { en: "Canned reply changed", de: "Textbaustein geändert" },
  "inbox_label.create": { en: "Label added", de: "Label hinzugefügt" },
  "inbox_label.delete": { en: "Label deleted", de: "Label gelöscht" },
  "inbox_view.create": { en: "View saved", de: "Ansicht gespeichert" },
  "inbox_view.delete": { en: "View deleted", de: "Ansicht gelöscht" },
  "conversation.assign": { en: "Conversation assigned", de: "Gespräch zugewiesen" },
  "conversation.label": { en: "Labels changed", de: "Labels geändert" },
  "conversation.note": { en: "Note written", de: "Notiz geschrieben" },
  "conversation.note_delete": { en: "Note deleted", de: "Notiz gelöscht" },
  "conversation.close": { en: "Conversation closed", de: "Gespräch geschlossen" },
  "conversation.message": { en: "Customer answered", de: "Kunden geantwortet" },
  "conversation.release": { en: "Conversation given back", de: "Gespräch zurückgegeben" },
  "conversation.takeover": { en: "Conversation taken over", de: "Gespräch übernommen" },
  "end_user.delete": { en: "Person erased", de: "Person gelöscht" },
  "end_user.export": { en: "Person’s data exported", de: "Daten einer Person exportiert" },
  "token.create": { en: "Access token created", de: "Zugangstoken angelegt" },
  "token.revoke": { en: "Access token revoked", de: "Zugangstoken widerrufen" },
  "correction.approve": { en: "Correction approved", de: "Korrektur freigegeben" },
  "correction.approve_forced": {
    en: "Correction approved without a preview",
    de: "Korrektur ohne Vorschau freigegeben"
  },
  "correction.create": { en: "Correction drafted", de: "Korrektur entworfen" },
  "correction.delete": { en: "Correction deleted", de: "Korrektur gelöscht" },
  "correction.preview": { en: "Correction previewed", de: "Korrektur vorab geprüft" },
  "correction.update": { en: "Correction changed", de: "Korrektur geändert" },
  "passage.exclude": { en: "Passage excluded from search", de: "Abschnitt von der Suche ausgenommen" },
  "passage.restore": { en: "Passage taken back into search", de: "Abschnitt wieder in die Suche genommen" },
  "finding.dismiss": { en: "Finding dismissed", de: "Fund verworfen" },
  "finding.restore": { en: "Finding restored", de: "Fund wiederhergestellt" },
  "experiment.cancel": { en: "Experiment cancelled", de: "Experiment abgebrochen" },
  "experiment.delete": { en: "Experiment deleted", de: "Experiment gelöscht" },
  "experiment.start": { en: "Experiment started", de: "Experiment gestartet" },
  "key.create": { en: "Key created", de: "Schlüssel angelegt" },
  "key.revoke": { en: "Key revoked", de: "Schlüssel widerrufen" },
  "key.update": { en: "Key changed", de: "Schlüssel geändert" },
  "retention.update": { en: "Retention changed", de: "Aufbewahrung geändert" },
  "domain.confirm": { en: "Domain confirmed", de: "Domain bestätigt" },
  "domain.withdraw": { en: "Domain withdrawn", de: "Domain zurückgezogen" },
  "single_sign_on.update": { en: "Single sign-on changed", de: "Single Sign-on geändert" },
  "single_sign_on.delete": { en: "Single sign-on removed", de: "Single Sign-on entfernt" },
  "passkey.create": { en: "Passkey added", de: "Passkey hinzugefügt" },
  "passkey.delete": { en: "Passkey removed", de: "Passkey entfernt" },
  "scim_token.create": { en: "Provisioning token created", de: "Bereitstellungs-Token angelegt" },
  "scim_token.revoke": { en: "Provisioning token revoked", de: "Bereitstellungs-Token widerrufen" },
  "group.create": { en: "Group provisioned", de: "Gruppe bereitgestellt" },
  "group.update": { en: "Group changed", de: "Gruppe geändert" },
  "group.delete": { en: "Group deleted", de: "Gruppe gelöscht" },
  "session.revoke": { en: "Session ended", de: "Sitzung beendet" },
  "user.recover": {
    en: "Owner let in again by the operator",
    de: "Inhaber vom Betreiber wieder eingelassen"
  },
  "source.create": { en: "Source added", de: "Quelle hinzugefügt" },
  "source.delete": { en: "Source deleted", de: "Quelle gelöscht" },
  "source.sync": { en: "Source read again", de: "Quelle erneut gelesen" },
  "source.update": { en: "Source changed", de: "Quelle geändert" },
  "subscription.update": { en: "Subscription changed", de: "Tarif geändert" },
  "test_case.create": { en: "Test case added", de: "Testfall hinzugefügt" },
  "test_case.delete": { en: "Test case deleted", de: "Testfall gelöscht" },
  "test_case.import": { en: "Test cases imported", de: "Testfälle importiert" },
  "test_case.update": { en: "Test case changed", de: "Testfall geändert" },
  "tool.create": { en: "Tool created", de: "Werkzeug angelegt" },
  "tool.delete": { en: "Tool deleted", de: "Werkzeug gelöscht" },
  "tool.update": { en: "Tool changed", de: "Werkzeug geändert" },
  "user.create": { en: "Somebody invited", de: "Jemand eingeladen" },
  "user.delete": { en: "Member removed", de: "Mitglied entfernt" },
  "user.invite": { en: "Invitation renewed", de: "Einladung erneuert" },
  "user.link": {
    en: "Member signed in at the provider first",
    de: "Mitglied erstmals beim Anbieter angemeldet"
  },
  "user.password": { en: "Password chosen", de: "Passwort gewählt" },
  "user.update": { en: "Member changed", de: "Mitglied geändert" },
  "widget.update": { en: "Widget changed", de: "Widget geändert" },
  "webhook.create": { en: "Webhook added", de: "Webhook hinzugefügt" },
  "webhook.delete": { en: "Webhook deleted", de: "Webhook gelöscht" },
  "webhook.disable": { en: "Webhook disabled after failures", de: "Webhook nach Fehlern ausgeschaltet" },
  "webhook.replay": { en: "Events sent again", de: "Ereignisse erneut gesendet" },
  "webhook.listen": { en: "Listener of events started", de: "Zuhörer für Ereignisse gestartet" },
  "webhook.trigger": { en: "Example event sent", de: "Beispielereignis gesendet" },
  "webhook.rotate": { en: "Webhook secret replaced", de: "Webhook-Geheimnis ersetzt" },
  "webhook.test": { en: "Test event sent", de: "Test-Ereignis gesendet" },
  "webhook.update": { en: "Webhook changed", de: "Webhook geändert" }
}

export const actionOf = (action: string, language: Language): string => actions[action]?.[language] ?? action
