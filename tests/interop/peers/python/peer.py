"""One process of the Python SDK: an executor where a queue is named, and a client always.

Its one argument is a JSON object of url, app, version and queue. It answers each JSON line with one.
"""

import json
import sys

from dbos import DBOS, DBOSClient, DBOSConfiguredInstance, PortableWorkflowError, WorkflowSerializationFormat

RESULT_POLL = 0.05


@DBOS.workflow(name="echo")
def echo(value):
    return value


@DBOS.workflow(name="join")
def join(text, number):
    return f"{text}{number}"


@DBOS.workflow(name="nothing")
def nothing():
    return None


class Declined(Exception):
    """Its name, code and data are what a portable error carries."""

    def __init__(self, reason):
        super().__init__(reason)
        self.code = 42
        self.data = {"reason": reason}


@DBOS.workflow(name="refuse")
def refuse(reason):
    raise Declined(reason)


@DBOS.step(name="double")
def double(number):
    return 2 * number


@DBOS.workflow(name="steps")
def steps(number):
    return double(number) + double(number)


@DBOS.workflow(name="hold")
def hold(seconds):
    DBOS.sleep(seconds)
    return "held"


@DBOS.dbos_class("Desk")
class Desk(DBOSConfiguredInstance):
    @DBOS.workflow(name="open")
    def open(self, text):
        return f"{self.config_name}:{text}"


def launch(given):
    config = {
        "name": given["app"],
        "system_database_url": given["url"],
        "application_version": given["version"],
        "log_level": "CRITICAL",
    }
    # An option of the older line alone.
    if "run_admin_server" in getattr(sys.modules["dbos"].DBOSConfig, "__annotations__", {}):
        config["run_admin_server"] = False
    DBOS(config=config)
    Desk("east")
    DBOS.listen_queues([given["queue"]])
    DBOS.launch()
    DBOS.register_queue(given["queue"], polling_interval_sec=0.05)


def enqueue(client, asked):
    options = {"workflow_name": asked["workflow"], "queue_name": asked["queue"]}
    names = {"id": "workflow_id", "class": "class_name", "instance": "instance_name", "version": "app_version"}
    for short, long in {**names, "app": "application_name"}.items():
        if short in asked:
            options[long] = asked[short]
    if not asked.get("native"):
        options["serialization_type"] = WorkflowSerializationFormat.PORTABLE
    handle = client.enqueue(options, *asked.get("args", []), **asked.get("named", {}))
    return {"id": handle.get_workflow_id()}


def result(client, asked):
    handle = client.retrieve_workflow(asked["id"])
    try:
        return {"value": handle.get_result(polling_interval_sec=RESULT_POLL)}
    except PortableWorkflowError as error:
        return {"error": {"name": error.name, "message": error.message, "code": error.code, "data": error.data}}
    except Exception as error:
        return {"error": {"name": type(error).__name__, "message": str(error), "code": None, "data": None}}


def status(client, asked):
    return {"status": client.retrieve_workflow(asked["id"]).get_status().status}


def main():
    given = json.loads(sys.argv[1])
    if "queue" in given:
        launch(given)
    client = DBOSClient(system_database_url=given["url"])
    answers = {"enqueue": enqueue, "result": result, "status": status}
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = answers[asked["do"]](client, asked)
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    client.destroy()
    if "queue" in given:
        DBOS.destroy()


main()
