"""Known names, words that reveal a name, and patterns that reveal the kind of a document; meant to stay small."""

from __future__ import annotations

from typing import Literal, NamedTuple

ContentType = Literal["tutorial", "news", "doc", "email", "paper", "code", "reference"]
_NUMBER = r"^(?:[\divx]{1,4}\.? )?"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _lines(text: str) -> frozenset[str]:
    return frozenset(line.strip() for line in text.split(",") if line.strip())


HONORIFICS = _words(
    "Mr Mrs Ms Miss Mx Dr Prof Professor Sir Dame Lady Lord Captain Judge Senator President Chancellor "
    "Minister Rabbi Reverend Herr Frau Doktor Monsieur Madame Mme Mlle Señor Señora Don Doña Doctor "
    "Doctora Signor Signora"
)
NAMES_AND_WORDS = _words(
    "Mark Will Bill Grace Rose Hope Faith Joy Jack Art Drew Rob Pat Sue Dawn Iris Lily Daisy Violet Ruby "
    "Jade Amber Crystal Frank Grant Dean Earl Guy Miles Chase Hunter Mason Carter Parker Victor Max Leo "
    "Stella Gloria Claude"
)
"""Given names that are words as well: they count inside a sentence only."""
GIVEN_NAMES = (
    _words(
        "Aaron Abigail Adam Ada Adrian Agnes Ahmed Aisha Alan Alberto Alejandro Alessandro Alex Alexander "
        "Alexandra Alfred Alice Alicia Ali Amanda Amelia Amina Amir Amy Ana Anastasia Andrea Andreas Andrew "
        "Andrey Angela Anita Anja Anjali Anna Anne Annika Anthony Antoine Antonio Arjun Arthur Astrid Barbara "
        "Beatrice Ben Benjamin Bernard Bernd Birgit Björn Brian Bruno Camille Carl Carla Carlos Carmen "
        "Caroline Catherine Cécile Cecilia Charles Charlotte Chen Chloe Chris Christian Christina Christine "
        "Christopher Claire Clara Claude Claudia Daniel Daniela David Deborah Denis Diana Diego Dieter "
        "Dimitri Dmitry Dorothy Edith Eduardo Edward Elena Elif Elisabeth Elise Elizabeth Ella Ellen Emil "
        "Emilia Emily Emma Enrique Eric Erik Erika Ernst Esther Eva Evelyn Fatima Felix Fernando Fiona "
        "Florian Frances Francesca Francesco Francisco François Frank Franz Frederick Frida Friedrich Fritz "
        "Gabriel Gabriela Geoffrey George Georg Gerald Gerhard Giovanni Giulia Gloria Gordon Greta Guillaume "
        "Gustav Hamid Hannah Hans Harold Harriet Harry Hassan Heidi Heinrich Helen Helena Helga Henri Henrik "
        "Henry Hiroshi Hugo Ian Ibrahim Igor Ines Ingrid Irene Isaac Isabel Isabella Ivan Jacob Jacques James "
        "Jan Jane Janet Javier Jean Jennifer Jens Jessica Joachim Joan Johan Johann Johanna John Jonas "
        "Jonathan Jörg Jorge José Josef Joseph Joshua Juan Judith Julia Julian Julie Jürgen Kai Karen Karin "
        "Karl Katarina Katharina Katherine Kathleen Kenji Kenneth Kevin Klaus Kristina Lars Laura Lauren "
        "Laurent Lea Leila Lena Leo Leonard Leonardo Lidia Linda Lisa Liu Louis Louise Lucas Lucia Lucy "
        "Ludwig Luigi Luis Luisa Lukas Magdalena Manuel Marc Marco Margaret Maria María Marie Mario Marta "
        "Martha Martin Martina Mary Mateo Mathilde Matteo Matthew Matthias Maurice Max Maya Mei Mehmet "
        "Melanie Michael Michel Michelle Miguel Mikhail Mohamed Mohammed Monica Monika Muhammad Nadia Natalia "
        "Natalie Nathan Nicholas Nicolas Nicole Niels Nikolai Nikolaus Nils Nina Noah Nora Olga Oliver Olivia "
        "Omar Oscar Otto Pablo Patricia Patrick Paul Paula Paulo Pedro Peter Petra Philip Philippe Pierre "
        "Priya Rachel Rafael Raj Ralph Raymond Rebecca Renate Ricardo Richard Robert Roberto Roger Roland "
        "Rosa Rosalind Roxana Rudolf Ruth Samantha Samuel Sandra Sara Sarah Sebastian Sergei Sharon Sigrid "
        "Silvia Simon Sofia Sophia Sophie Stefan Stefanie Stella Stephan Stephanie Stephen Steven Susan "
        "Susanne Svetlana Sylvia Tatiana Teresa Theodor Theresa Thomas Tim Timothy Tobias Tom Tomás Tony "
        "Ulrich Ursula Valentina Vera Veronica Victor Victoria Viktor Vincent Vladimir Walter Wei Werner "
        "Wilhelm William Wolfgang Xavier Yuki Yusuf Yvonne Zoe Margarete Ole"
    )
    | NAMES_AND_WORDS
)
PARTICLES = _words("von van de del della di da dos du bin ibn al ter")
ARTICLES = _words("der den la las los")
"""They stand in a name only behind a particle: "von der", "de la"."""
PERSON_VERBS = _words(
    "said says told wrote writes writing argued argues explained explains added replied asked recalled "
    "insisted joined resigned retired died studied founded invented sagte schrieb erklärte déclare écrit "
    "dijo escribió afirmó"
)
NOT_PEOPLE = _words(
    "Street Avenue Road Square River Lake Mount Island Islands Bay City County Park Bridge Airport "
    "Station Port Award Prize Day Act Theorem Law Effect Disease Syndrome Test Model Method Cup League "
    "Road Hall House Church Castle Library Project Programme Program Report Conference Workshop Edition "
    "Straße Platz Allee Rue Calle"
)

PLACES = _words(
    "New North South East West Great Grand Upper Lower United San Santa Saint St Los Las Port White Royal "
    "National Central Supreme High Old Black Red Green"
)
"""First words of places and offices, which also "say" things."""

ORG_ENDINGS = _words(
    "Inc Incorporated Ltd Limited LLC LLP PLC Plc Corp Corporation Co Company GmbH AG KG OHG SE SA SAS "
    "SARL SpA BV NV AB AS Oy ApS Pty Holdings Group Partners Associates Industries Technologies Systems "
    "Laboratories Labs Foundation Institute University College School Academy Bank Hospital Clinic Museum "
    "Agency Authority Association Society Council Committee Commission Union Federation League Party "
    "Ministry Department Bureau Office Press Airlines Airways Ferries Railways Motors Pharmaceuticals "
    "Insurance Consortium Cooperative Trust Universität Hochschule Institut Stiftung Verein Université "
    "Universidad Fundación Banco Ministerio Ministère"
)
ORG_BEGINNINGS = _words(
    "University Universität Université Universidad Bank Ministry Department Institute Bureau Academy "
    "School College Council Board Office Center Centre Association Society Museum Faculty Federation "
    "Ministère Ministerio Banco Banque Institut Hochschule"
)
ORG_LINKS = _words("of for the de la du des del für der")
"""Words that join an organization's beginning to the rest of its name."""
ORGANIZATIONS = _lines(
    "Google, Microsoft, Apple, Amazon, Meta, Facebook, OpenAI, Anthropic, Mozilla, IBM, Intel, AMD, "
    "NVIDIA, Nvidia, Samsung, Sony, Siemens, Bosch, SAP, Oracle, Adobe, Netflix, Spotify, Tesla, Toyota, "
    "Volkswagen, BMW, Airbus, Boeing, Lufthansa, Shell, BASF, Bayer, Pfizer, Novartis, Roche, Nestlé, "
    "Unilever, Philips, Nokia, Ericsson, Huawei, Alibaba, Tencent, Red Hat, GitHub, GitLab, Hugging Face, "
    "DeepMind, LinkedIn, Twitter, PayPal, Stripe, Cloudflare, Reuters, Bloomberg, NASA, ESA, CERN, WHO, "
    "UNESCO, UNICEF, NATO, OECD, IMF, WTO, FAO, IPCC, FBI, FDA, EPA, NIH, CDC, EMA, ECB, MIT, ETH, BBC, "
    "CNN, IEEE, ACM, ISO, IETF, W3C, Interpol, Greenpeace, Oxfam, United Nations, European Union, "
    "European Commission, European Parliament, World Bank, Red Cross, Supreme Court, European Central "
    "Bank, World Health Organization, Max Planck Society, Linux Foundation"
)

TECHNOLOGIES = _lines(
    "Python, JavaScript, TypeScript, Java, Kotlin, Scala, Haskell, Erlang, Elixir, Clojure, Perl, PHP, "
    "C++, C#, F#, Fortran, COBOL, Lua, MATLAB, Golang, Bash, PowerShell, Node.js, Next.js, Vue.js, Deno, "
    "Django, FastAPI, Rails, Laravel, Spring Boot, Angular, Svelte, jQuery, Bootstrap, Tailwind, GraphQL, "
    "gRPC, OAuth, OpenID, OpenAPI, PostgreSQL, Postgres, MySQL, MariaDB, SQLite, MongoDB, Redis, "
    "Memcached, Cassandra, Elasticsearch, OpenSearch, DynamoDB, BigQuery, Snowflake, DuckDB, ClickHouse, "
    "Neo4j, Qdrant, Milvus, Weaviate, Pinecone, ChromaDB, pgvector, FAISS, Lucene, Solr, Kafka, RabbitMQ, "
    "Celery, Airflow, Hadoop, NumPy, SciPy, pandas, PyTorch, TensorFlow, Keras, scikit-learn, ONNX, "
    "OpenVINO, CUDA, Jupyter, LangChain, LangGraph, LlamaIndex, Haystack, Ollama, vLLM, ChatGPT, BERT, "
    "Docker, Kubernetes, Helm, Terraform, Ansible, Jenkins, Grafana, Prometheus, OpenTelemetry, nginx, "
    "Nginx, Apache HTTP Server, HAProxy, Caddy, systemd, Linux, Ubuntu, Debian, Fedora, Alpine Linux, "
    "macOS, iOS, Android, FreeBSD, GitHub Actions, Git, Markdown, LaTeX, Unicode, Bluetooth, Wi-Fi, "
    "WebAssembly, WebSocket, WebSockets, WebRTC, Firefox, Chromium, Selenium, Playwright, Visual Studio "
    "Code, Google Cloud, Azure, Raspberry Pi, Arduino, Webpack, Vite, pytest, SQLAlchemy, Pydantic, "
    "OpenSSL, WireGuard, Let's Encrypt, Power BI, Blockchain, Ethereum, Bitcoin, CRISPR"
)
AMBIGUOUS_TECHNOLOGIES = _words(
    "Go Rust Swift Ruby Dart Julia Spark Flask React Vue Express Spring Windows Chrome Safari Edge "
    "Swagger Postman Elastic Vault Consul Ray Dask Chroma Puppet Chef"
)
"""They count where the document names another technology that can be nothing else."""
TECH_ACRONYMS = _words(
    "API APIs SOAP RPC SDK CLI GUI HTTP HTTPS TCP UDP DNS DHCP TLS SSL SSH FTP SFTP SMTP IMAP LDAP SAML "
    "JWT JSON XML YAML TOML CSV HTML CSS SVG PDF SQL NoSQL ORM ETL OLAP RAG LLM LLMs NLP OCR GPU GPUs CPU "
    "CPUs SSD HNSW BM25 RRF MQTT AMQP CORS CSRF XSS VPN IPv4 IPv6 AES HMAC SHA-256 UTF-8 ASCII AWS GCP S3 "
    "EC2 MCP RSS URL URLs URI UUID WAL CDN USB HDMI NFC RFID GPS LTE 5G IoT"
)
TECH_NOUNS = _words(
    "API APIs protocol protocols server servers library framework format driver SDK database endpoint "
    "header plugin compiler algorithm interface firmware runtime cluster syntax Protokoll Schnittstelle "
    "Datenbank Bibliothek"
)
"""An acronym before one of these names a technology."""
NOT_VERSIONED = _words(
    "Section Sections Figure Figures Fig Table Tables Chapter Version Release Step Level Part Article "
    "Appendix Equation Page Volume Rule Note Grade Abschnitt Kapitel Tabelle Abbildung Artikel January "
    "February March April May June July August September October November December EUR USD GBP CHF"
)


class Cue(NamedTuple):
    """A pattern that speaks for a kind, and its weight; it matches at the start of a word."""

    kind: ContentType
    weight: float
    pattern: str


HEADING_CUES = (
    Cue("tutorial", 3, r"(?:tutorial|walk-?through|quick ?start|getting started|how to|step[- ]by[- ]step)\b"),
    Cue("tutorial", 3, r"(?:anleitung|erste schritte|tutoriel|premiers pas|primeros pasos|paso a paso)\b"),
    Cue("tutorial", 1.5, r"(?:^(?:step|schritt|étape|paso) \d|prerequisites|before you begin|next steps)\b"),
    Cue("paper", 2, rf"{_NUMBER}(?:abstract|references|bibliography|related work|acknowledge?ments)$"),
    Cue("paper", 2, r"^(?:zusammenfassung|literatur|literaturverzeichnis|résumé|resumen|bibliografía)$"),
    Cue("paper", 1, rf"{_NUMBER}(?:introduction|methods?|methodology|results|discussion|conclusions?)$"),
    Cue("reference", 3, r"(?:reference|^glossary|^glossar|^glossaire|^glosario)$"),
    Cue("reference", 1.5, r"^(?:parameters?|arguments|returns?|options|syntax|fields|properties|endpoints)$"),
    Cue("reference", 1, r"^(?:[\w.]{2,60}\([^)]{0,80}\)|(?:get|post|put|patch|delete) /\S{0,80})$"),
)
SENTENCE_CUES = (
    Cue("tutorial", 1, r"(?:you will (?:learn|need|build)|let's|in this (?:tutorial|guide|lesson))\b"),
    Cue("tutorial", 0.5, r"^(?:first|next|then|now|finally),? (?:we|you|open|click|run|create|install|add)\b"),
    Cue("tutorial", 0.5, r"^(?:open|click|run|install|create|type|press|choose|select|download|copy) "),
    Cue("news", 2, r"^[\w .]{1,30}(?:, [a-z]{3,9}\.? \d{1,2})?(?: \([a-z]{2,8}\))? [—–] "),
    Cue("news", 1, r"(?:reported|announced|according to|told reporters|spokes(?:wo)?man|press release)\b"),
    Cue("news", 1, r"(?:teilte mit|a annoncé|selon|según|anunció)\b"),
    Cue("news", 1, r"(?:on (?:mon|tues|wednes|thurs|fri|satur|sun)day|yesterday|last (?:week|night|month))\b"),
    Cue("news", 1, r"(?:am (?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)|gestern|ayer)\b"),
    Cue("news", 0.5, r"(?:said|says|sagte|a déclaré|dijo)\b"),
    Cue("paper", 1, r"(?:et al\b|doi\s?:|arxiv\b|p ?[<=] ?0?\.\d)"),
    Cue("paper", 1, r"we (?:propose|show that|present|evaluated?|investigated?|demonstrate|conclude)\b"),
    Cue("paper", 1, r"(?:in this (?:paper|study|work)|(?:our|these) (?:results|findings|data))\b"),
    Cue("paper", 1, r"^(?:background|objectives?|methods|results|conclusions?)(?:\b[:.]| and | we | the )"),
    Cue("paper", 0.5, r"(?:(?<=\[)\d{1,3}(?:, ?\d{1,3}){0,9}\]|(?<=\()(?:19|20)\d\d\))"),
    Cue("reference", 0.5, r"(?:defaults? to|must be one of|returns (?:an?|the|true|none|null)|is required)\b"),
)
